//! A run that goes on, for who looks at it from outside: its metrics (`--metrics`) and its page (`--serve`).
//!
//! Owns the listeners and what was read last. Everything comes from the record, as the reports do after the run; so nothing here can disturb the
//! one who writes it. It must not be a burden: the record is read on demand, at most once an interval, and never for more than a
//! twentieth of the time.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use reports::record::{Record, file};
use reports::{judge, render};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::interval;

/// Connections at once: a browser opens six, a Prometheus one.
const CONNECTIONS_MAX: usize = 32;
/// A request must be there by then.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// A connection lives no longer: who is slower asks again.
const CONNECTION_LIMIT: Duration = Duration::from_mins(2);
/// Reading may take this share of the time.
const SHARE: u32 = 20;
/// A larger file is read from the folder itself.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// The text that a Prometheus understands.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// What is listened for.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Addresses {
    /// `--metrics`.
    pub(crate) metrics: Option<SocketAddr>,
    /// `--serve`.
    pub(crate) page: Option<SocketAddr>,
}

/// Listeners that nobody answers yet.
pub(super) struct Bound(Vec<(Shows, TcpListener)>);

/// The listeners. Dropping it closes them.
pub(super) struct Window {
    _serving: JoinSet<()>,
}

/// What one of them shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    Metrics,
    All,
}

/// What was read last.
#[derive(Default)]
struct Read {
    next: Option<Instant>,
    page: Bytes,
    metrics: Bytes,
}

struct State {
    directory: PathBuf,
    read: Mutex<Read>,
}

impl Bound {
    /// Takes the addresses before anything is started.
    pub(super) async fn to(addresses: Addresses) -> Result<Self> {
        let mut bound = Vec::new();
        let wanted = [("--metrics", Shows::Metrics, addresses.metrics), ("--serve", Shows::All, addresses.page)];
        for (flag, shows, address) in wanted {
            let Some(address) = address else { continue };
            let listener = TcpListener::bind(address).await;
            let listener =
                listener.with_context(|| format!("{flag}: failed to listen at {address}: name another port"))?;
            bound.push((shows, listener));
        }
        Ok(Self(bound))
    }

    /// Answers from now on, from the record in this folder; says where.
    pub(super) fn open(self, directory: &Path, mut say: impl FnMut(&str)) -> Result<Window> {
        let state = Arc::new(State { directory: directory.to_owned(), read: Mutex::default() });
        let mut serving = JoinSet::new();
        for (shows, listener) in self.0 {
            let address = listener.local_addr()?;
            say(&match shows {
                Shows::Metrics => format!("metrics: http://{address}/metrics"),
                Shows::All => format!("the run as it goes on: http://{address}/"),
            });
            serving.spawn(accept(listener, shows, Arc::clone(&state)));
        }
        Ok(Window { _serving: serving })
    }
}

async fn accept(listener: TcpListener, shows: Shows, state: Arc<State>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(HEAD_LIMIT).await;
            continue;
        };
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let _place = place;
            // One that breaks, or is too slow, is its client's business.
            let _ = tokio::time::timeout(CONNECTION_LIMIT, serve(stream, shows, state)).await;
        });
    }
}

async fn serve(stream: TcpStream, shows: Shows, state: Arc<State>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move { Ok::<_, std::convert::Infallible>(state.answer(&request, shows).await) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
}

impl State {
    async fn answer(&self, request: &Request<Incoming>, shows: Shows) -> Response<Full<Bytes>> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut refused = reply(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD\n".into());
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        let asked = request.uri().path();
        let known =
            file::DESCRIBED.into_iter().map(|(name, _)| name).find(|name| asked.strip_prefix('/') == Some(name));
        match (shows, asked, known) {
            (_, "/metrics", _) => self.newest(OPENMETRICS, |read| read.metrics.clone()).await,
            (Shows::Metrics, "/", _) => reply(StatusCode::OK, PLAIN, "metrics are at /metrics\n".into()),
            (Shows::All, "/", _) => self.newest(HTML, |read| read.page.clone()).await,
            (Shows::All, _, Some(name)) => self.file(name).await,
            _ => reply(StatusCode::NOT_FOUND, PLAIN, "there is / and /metrics\n".into()),
        }
    }

    /// What the record says now, or said an interval ago.
    async fn newest(&self, kind: &'static str, choose: fn(&Read) -> Bytes) -> Response<Full<Bytes>> {
        let mut read = self.read.lock().await;
        if read.next.is_none_or(|next| Instant::now() >= next) {
            let (began, directory) = (Instant::now(), self.directory.clone());
            let made = tokio::task::spawn_blocking(move || make(&directory)).await;
            match made.map_err(anyhow::Error::from).and_then(|made| made) {
                Ok((page, metrics)) => (read.page, read.metrics) = (page.into(), metrics.into()),
                Err(error) if read.page.is_empty() => {
                    let text = format!("the record cannot be read yet: {error:#}\n");
                    return reply(StatusCode::SERVICE_UNAVAILABLE, PLAIN, text.into());
                }
                // What was read before is still true, only older.
                Err(_) => {}
            }
            read.next = Some(Instant::now() + interval::EVERY.max(began.elapsed() * SHARE));
        }
        reply(StatusCode::OK, kind, choose(&read))
    }

    /// A file of the record, as it is now.
    async fn file(&self, name: &str) -> Response<Full<Bytes>> {
        let path = self.directory.join(name);
        let length = tokio::fs::metadata(&path).await.map(|about| about.len());
        match length {
            Err(_) => reply(StatusCode::NOT_FOUND, PLAIN, "this run has not written it\n".into()),
            Ok(length) if length > FILE_BYTES_MAX => {
                let text = format!("it has {length} bytes: read it from the folder of the record\n");
                reply(StatusCode::PAYLOAD_TOO_LARGE, PLAIN, text.into())
            }
            Ok(_) => match tokio::fs::read(&path).await {
                Ok(text) => reply(StatusCode::OK, PLAIN, text.into()),
                Err(_) => reply(StatusCode::NOT_FOUND, PLAIN, "it cannot be read\n".into()),
            },
        }
    }
}

/// The page and the metrics of what the record has so far.
fn make(directory: &Path) -> Result<(String, String)> {
    let record = Record::open(directory)?;
    let judgement = judge::judge(&record);
    Ok((render::running_html(&record, &judgement)?, render::openmetrics(&record, &judgement)?))
}

fn reply(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An address on the command line: a port of the loopback interface, or an address written out.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let written = || text.replacen("localhost:", "127.0.0.1:", 1).parse::<SocketAddr>();
    port.map(loopback).or_else(|_| written()).map_err(|_| {
        format!(
            "{text:?} is no address: write a port (9090, of this machine only), or an address with one (0.0.0.0:9090)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who names only a port shows nothing to others.
    #[test]
    fn a_port_alone_is_of_this_machine_only() {
        for (text, expected) in [
            ("9090", "127.0.0.1:9090"),
            (":9090", "127.0.0.1:9090"),
            ("0", "127.0.0.1:0"),
            ("localhost:1", "127.0.0.1:1"),
            ("0.0.0.0:9090", "0.0.0.0:9090"),
            ("[::1]:9090", "[::1]:9090"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "x", "70000", "127.0.0.1", "example.com:1"] {
            assert!(address(text).unwrap_err().contains("write a port"), "{text}");
        }
    }
}
