//! A receiver that accepts every observation and keeps none, for measurements without a ledger.
//!
//! A subject that reports a hundred thousand objects at its start must not fail because of limits of the witness.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::accept::{respond, serve_http};

/// Maximum number of open connections; further connections wait.
const CONNECTIONS_MAX: usize = 64;

/// The receiver. Dropping it closes its connections.
pub(super) struct Sink {
    pub(super) address: SocketAddr,
    _listens: AbortOnDropHandle<()>,
}

impl Sink {
    /// Listens on a free port of this machine.
    pub(super) async fn open() -> Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("failed to listen for observations")?;
        let address = listener.local_addr().context("failed to listen for observations")?;
        let listens = tokio::spawn(serve_http(listener, CONNECTIONS_MAX, None, accepted));
        Ok(Self { address, _listens: AbortOnDropHandle::new(listens) })
    }
}

/// Reads a request to its end, and answers that it was accepted.
async fn accepted(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    respond(StatusCode::NO_CONTENT, Bytes::new())
}
