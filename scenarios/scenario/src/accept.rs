//! Accepts TCP connections on the harness's own listeners: the witness, the receiver of alerts, the harness's small
//! Redis server. Also answers HTTP/1.1 requests on such a listener.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Pause before the next attempt to accept if the process has no file descriptor left; another connection may close
/// meanwhile.
const REST: Duration = Duration::from_millis(50);

/// Serves up to `connections_max` connections at the same time. Further connections wait in the kernel's queue.
/// Dropping the future of this function ends all connections.
pub async fn accept<F>(listener: TcpListener, connections_max: usize, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(connections_max));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let serves = serve(stream);
        connections.spawn(async move {
            let _place = place;
            serves.await;
        });
    }
}

/// Answers the HTTP/1.1 requests of up to `connections_max` connections with `answer`. Closes a connection on which no
/// whole request head arrives within `idle`; `None` is no limit.
pub async fn serve_http<F>(
    listener: TcpListener,
    connections_max: usize,
    idle: Option<Duration>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let serve = |stream| {
        let answer = answer.clone();
        async move {
            let service = hyper::service::service_fn(|request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            if let Some(idle) = idle {
                http.timer(TokioTimer::new()).header_read_timeout(idle);
            }
            // A broken connection ends only itself.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        }
    };
    accept(listener, connections_max, serve).await;
}

/// An answer with a status and a text.
pub fn respond(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}
