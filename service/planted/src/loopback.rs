//! Servers on loopback between a role and the outside.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use service_core::wire;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A body, whole or as it comes.
pub type Body = UnsyncBoxBody<Bytes, wire::Error>;
/// Answers a request whose body has been read.
pub type Handler = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// A free port, and the future that serves it until dropped.
pub async fn listen(handler: Handler) -> std::io::Result<(SocketAddr, BoxFuture<'static, ()>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let serve = async move {
        let mut connections = JoinSet::new();
        loop {
            let Ok((tcp, _)) = listener.accept().await else { continue };
            while connections.try_join_next().is_some() {}
            let handler = Arc::clone(&handler);
            let answer = service_fn(move |request: Request<_>| {
                let handler = Arc::clone(&handler);
                async move {
                    let (head, body) = request.into_parts();
                    let body = hyper::body::Incoming::collect(body).await;
                    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                    Ok::<_, Infallible>(handler(Request::from_parts(head, body)).await)
                }
            });
            connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(tcp), answer));
        }
    };
    Ok((address, serve.boxed()))
}

/// A complete answer.
pub fn response(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
}
