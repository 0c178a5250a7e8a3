//! HTTP over TLS as the generators need it: raw connections, pools of our own, every step with a deadline and a cap.
//!
//! A ready-made pooled client would queue behind its connections and hide the time that costs. Nothing here knows what
//! is sent; it knows where, how, and how a failed exchange is classed.

mod endpoint;
mod exchange;
mod http1;

use bytes::Bytes;
use http::StatusCode;

pub(crate) use endpoint::{CONNECT_LIMIT, Endpoint, EndpointError, TLS_LIMIT, Tls};
pub(crate) use exchange::{Awaited, Body, MOST_BODY_BYTES, Progress, timed_out};
pub(crate) use http1::Http1;

use crate::socket::{Coding, Seen};

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub content_type: Option<String>,
    pub body: Bytes,
}

impl Answer {
    /// The parts that say whether it counts.
    pub(crate) fn seen(&self) -> Seen<'_> {
        let content_type = self.content_type.as_deref().map(str::as_bytes);
        Seen { status: self.status.as_u16(), content_type, coding: Coding::Identity, body: &self.body }
    }
}

/// Why there is no answer, or none that counts.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub class: Class,
    pub text: String,
}

/// The classes that failures are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    HttpError,
    Timeout,
    Connect,
    Tls,
    InvalidResponse,
}

impl Class {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::HttpError => "http error",
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::InvalidResponse => "invalid response",
        }
    }
}

impl Failure {
    pub(crate) fn invalid(text: String) -> Self {
        Self { class: Class::InvalidResponse, text }
    }

    /// A body beyond [`MOST_BODY_BYTES`], with the length that was announced.
    pub(crate) fn body_too_large(announced: Option<u64>) -> Self {
        let announced = announced.map(|bytes| format!(" (Content-Length: {bytes})")).unwrap_or_default();
        Self::invalid(format!("the body is larger than {} MiB{announced}", MOST_BODY_BYTES >> 20))
    }

    /// The same of a compressed one, that came in so many bytes.
    pub(crate) fn unpacked_too_large(packed: usize) -> Self {
        let most = MOST_BODY_BYTES >> 20;
        Self::invalid(format!("the body is larger than {most} MiB when it is unpacked (from {packed} bytes)"))
    }

    pub(crate) fn http(text: String) -> Self {
        Self { class: Class::HttpError, text }
    }
}

/// An error with its causes, one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}
