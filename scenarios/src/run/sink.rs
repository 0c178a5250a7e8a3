//! A receiver that accepts every observation and keeps none, for measurements without a ledger.
//!
//! A subject that reports a hundred thousand objects at its start must not fail because of limits of the witness.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use crate::accept::accept;

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
        Ok(Self { address, _listens: AbortOnDropHandle::new(tokio::spawn(accept(listener, CONNECTIONS_MAX, serve))) })
    }
}

/// Reads every request of a connection to its end, and answers that it was accepted.
async fn serve(stream: TcpStream) {
    let service = service_fn(|request: Request<Incoming>| async move {
        let mut body = request.into_body();
        while let Some(Ok(_)) = body.frame().await {}
        let mut answer = Response::new(Empty::<Bytes>::new());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        Ok::<_, Infallible>(answer)
    });
    // A broken connection ends only itself.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
