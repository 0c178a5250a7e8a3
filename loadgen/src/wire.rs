//! HTTP over TLS for the generators: single connections and connection pools, with deadlines and size limits.
//!
//! A general client with a pool would queue calls for its connections and hide the time that they wait. This module
//! does not know the contents of requests. The module knows the server, the protocol, and the class of a failed
//! exchange.

mod endpoint;
mod exchange;
mod http1;

use bytes::Bytes;
use http::StatusCode;

pub(crate) use endpoint::{CONNECT_LIMIT, Endpoint, EndpointError, TLS_LIMIT, Tls};
pub(crate) use exchange::{Body, Progress};
pub(crate) use http1::Http1;

use crate::socket::{Coding, WholeAnswer};

#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub content_type: Option<String>,
    pub body: Bytes,
}

impl Answer {
    /// The properties of an answer that decide whether it is valid.
    pub(crate) fn seen(&self) -> WholeAnswer<'_> {
        let content_type = self.content_type.as_deref().map(str::as_bytes);
        WholeAnswer { status: self.status.as_u16(), content_type, coding: Coding::Identity, body: &self.body }
    }
}
