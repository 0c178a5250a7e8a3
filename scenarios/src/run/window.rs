//! The HTTP pages of a run that is in progress: its metrics (`--metrics`) and its report so far (`--serve`).
//!
//! Owns the listeners, and the pages computed from the record as it was last read. All data comes from the record, as
//! in the reports after the run, so the pages cannot disturb the record's writer. The cost is bounded: the record is
//! read on request, at most once per interval, and for at most a twentieth of the time.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use reports::record::{self, Record, file};
use reports::{judge, render};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::interval;
use visitor::Visitors;

mod visitor;

/// Maximum number of connections at once: a browser opens six, a Prometheus one.
const CONNECTIONS_MAX: usize = 32;
/// Timeout for the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// Longest life of a connection; a slower client connects again.
const CONNECTION_LIMIT: Duration = Duration::from_mins(2);
/// At most the time of the run divided by this number is spent on reading the record.
const SHARE: u32 = 20;
/// How long a page waits for the end of the run before it asks again. This time is shorter than [`CONNECTION_LIMIT`].
const END_LIMIT: Duration = Duration::from_secs(90);
/// Time after the end of the run in which a page that is being reloaded can connect.
const COME_BACK: Duration = Duration::from_secs(1);
/// If a page was requested within this time before the end of the run, the server waits until the page gets the report.
/// Pages ask for new data every five seconds.
const LOOKED_LATELY: Duration = Duration::from_secs(12);
/// Longest time for delivering the report to waiting pages.
const LAST_LOOK: Duration = Duration::from_secs(5);
/// Maximum size of a file that is served; a larger file must be read from the run's folder.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// The content type of metrics, as Prometheus accepts it.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
/// The answer to a request by host name, because anybody can point a host name at this address.
const NOT_BY_NAME: &str = "ask by the address (such as http://127.0.0.1:9090), by localhost, or, where others may look, by the machine's own name\n";
const NO_TOKEN: &str = "the address of this run has a token in it: it was printed when the run began\n";
const PLAIN: &str = "text/plain; charset=utf-8";

/// The addresses on which the pages and the metrics are served.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) page: Option<SocketAddr>,
}

/// Listeners that are bound but do not answer yet.
pub(super) struct Bound(Vec<(Shows, TcpListener)>);

/// The open listeners. Dropping this value closes the listeners.
pub(super) struct Window {
    serving: JoinSet<()>,
    state: Arc<State>,
}

/// The content that a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    Metrics,
    All,
}

#[derive(Default)]
struct Read {
    next: Option<Instant>,
    page: Bytes,
    metrics: Bytes,
}

struct State {
    directory: PathBuf,
    visitors: Visitors,
    read: Mutex<Read>,
    /// The report, set at the end of the run. Open pages wait for the report.
    report: watch::Sender<Option<Bytes>>,
    /// The time at which the page was last requested.
    looked: Mutex<Option<Instant>>,
}

impl Bound {
    /// Binds the addresses before the run starts.
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

    /// Begins to answer from the record in this folder, and prints the addresses.
    pub(super) fn open(self, directory: &Path, mut say: impl FnMut(&str)) -> Result<Window> {
        let state = Arc::new(State {
            directory: directory.to_owned(),
            visitors: Visitors::new()?,
            read: Mutex::default(),
            report: watch::Sender::new(None),
            looked: Mutex::default(),
        });
        let mut serving = JoinSet::new();
        for (shows, listener) in self.0 {
            let address = listener.local_addr()?;
            say(&match shows {
                Shows::Metrics => format!("metrics: http://{address}/metrics"),
                Shows::All => format!("the run as it goes on: http://{address}/{}/", state.visitors.token()),
            });
            serving.spawn(accept(listener, shows, Arc::clone(&state)));
        }
        Ok(Window { serving, state })
    }
}

impl Window {
    /// Delivers the report to open pages and closes the listeners. Called when the run has ended and its record is
    /// closed.
    pub(super) async fn end(mut self) {
        if self.state.looked.lock().await.is_none() {
            return;
        }
        let directory = self.state.directory.clone();
        let made = tokio::task::spawn_blocking(move || report(&directory)).await;
        // If the record cannot be read, the judge reports that.
        let Ok(Ok(report)) = made else { return };
        self.state.report.send_replace(Some(report.into()));
        let answered = async { while self.serving.join_next().await.is_some() {} };
        // A client that is too slow can read the report in the folder.
        let _ = tokio::time::timeout(LAST_LOOK, answered).await;
    }
}

/// Accepts connections until the run has ended, and a moment longer if a page is open.
async fn accept(listener: TcpListener, shows: Shows, state: Arc<State>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    let closed = state.closed(shows);
    tokio::pin!(closed);
    let Ok(at) = listener.local_addr() else { return };
    loop {
        while connections.try_join_next().is_some() {}
        let next = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut closed => break,
            next = next => next,
        };
        let Ok(place) = place else { return };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(HEAD_LIMIT).await;
            continue;
        };
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let _place = place;
            // A broken or slow connection is its client's problem.
            let _ = tokio::time::timeout(CONNECTION_LIMIT, serve(stream, (shows, at), state)).await;
        });
    }
    while connections.join_next().await.is_some() {}
}

/// Serves a connection. After the end of the run, only answers requests that were already received.
async fn serve(stream: TcpStream, (shows, at): (Shows, SocketAddr), state: Arc<State>) {
    let closed = Arc::clone(&state);
    let answer = service_fn(move |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move { Ok::<_, std::convert::Infallible>(state.answer(&request, shows, at).await) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
    let connection = server.serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    // A broken connection is its client's problem.
    let _ = tokio::select! {
        served = &mut connection => served,
        () = closed.closed(shows) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}

impl State {
    async fn answer(&self, request: &Request<Incoming>, shows: Shows, at: SocketAddr) -> Response<Full<Bytes>> {
        if !visitor::is_asked_by_its_name(request, at) {
            return reply(StatusCode::MISDIRECTED_REQUEST, PLAIN, NOT_BY_NAME.into());
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut refused = reply(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD\n".into());
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        let path = request.uri().path();
        // A Prometheus cannot be configured with a changing token; the numbers are no secret to this machine's users.
        let asked = self.visitors.below(path).filter(|_| shows == Shows::All);
        let named = asked.and_then(|asked| asked.strip_prefix('/'));
        let known = file::DESCRIBED.into_iter().map(|(name, _)| name).find(|name| named == Some(*name));
        match (shows, asked.unwrap_or(path), known) {
            (_, "/metrics", _) => self.newest(OPENMETRICS, |read| read.metrics.clone()).await,
            (Shows::Metrics, "/", _) => reply(StatusCode::OK, PLAIN, "metrics are at /metrics\n".into()),
            (Shows::All, ..) if asked.is_none() => reply(StatusCode::NOT_FOUND, PLAIN, NO_TOKEN.into()),
            (Shows::All, "/", _) => self.page().await,
            (Shows::All, "/ended", _) => self.ended().await,
            (Shows::All, _, Some(name)) => self.file(name).await,
            _ => reply(StatusCode::NOT_FOUND, PLAIN, "there is / and /metrics\n".into()),
        }
    }

    /// Returns when no new request is answered: the run has ended, and a page that was being reloaded has had time to
    /// connect.
    async fn closed(&self, shows: Shows) {
        let mut report = self.report.subscribe();
        // The sender lives as long as this state.
        let _ = report.wait_for(Option::is_some).await;
        let looked = *self.looked.lock().await;
        if shows == Shows::All && looked.is_some_and(|looked| looked.elapsed() < LOOKED_LATELY) {
            tokio::time::sleep(COME_BACK).await;
        }
    }

    /// The page of the running run, or the report after its end.
    async fn page(&self) -> Response<Full<Bytes>> {
        *self.looked.lock().await = Some(Instant::now());
        let report = self.report.borrow().clone();
        match report {
            Some(report) => reply(StatusCode::OK, HTML, report),
            None => self.newest(HTML, |read| read.page.clone()).await,
        }
    }

    /// Answers with the report as soon as the run has ended; an empty answer if the run does not end in time.
    async fn ended(&self) -> Response<Full<Bytes>> {
        let mut report = self.report.subscribe();
        let report = tokio::time::timeout(END_LIMIT, report.wait_for(Option::is_some)).await;
        match report {
            Ok(Ok(report)) => reply(StatusCode::OK, HTML, report.clone().unwrap_or_default()),
            _ => reply(StatusCode::NO_CONTENT, PLAIN, Bytes::new()),
        }
    }

    /// Answers with the record as it was last read, at most one interval ago.
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
                // The earlier reading is still true, only older.
                Err(_) => {}
            }
            read.next = Some(Instant::now() + interval::EVERY.max(began.elapsed() * SHARE));
        }
        reply(StatusCode::OK, kind, choose(&read))
    }

    /// The present content of a file of the record.
    async fn file(&self, name: &'static str) -> Response<Full<Bytes>> {
        let directory = self.directory.clone();
        let read = tokio::task::spawn_blocking(move || record::file_of(&directory, name, FILE_BYTES_MAX)).await;
        match read {
            Ok(Ok(Some(text))) => reply(StatusCode::OK, PLAIN, text.into()),
            Ok(Ok(None)) => reply(StatusCode::NOT_FOUND, PLAIN, "this run has not written it\n".into()),
            Ok(Err(record::Error::TooLarge { bytes, .. })) => {
                let text = format!("it has {bytes} bytes: read it from the folder of the record\n");
                reply(StatusCode::PAYLOAD_TOO_LARGE, PLAIN, text.into())
            }
            Ok(Err(_)) | Err(_) => reply(StatusCode::NOT_FOUND, PLAIN, "it cannot be read\n".into()),
        }
    }
}

/// The page and the metrics, computed from the record so far.
fn make(directory: &Path) -> Result<(String, String)> {
    let record = Record::open(directory)?;
    let judgement = judge::judge(&record);
    Ok((render::running_html(&record, &judgement)?, render::openmetrics(&record, &judgement)?))
}

fn report(directory: &Path) -> Result<String> {
    let record = Record::open(directory)?;
    Ok(render::html(&record, &judge::judge(&record))?)
}

fn reply(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Text is never interpreted as another type, and the token in the address is not passed on as a referrer.
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Parses an address on the command line: a port of the loopback interface, or an IP address with a port.
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

    /// If only a port is given, other machines cannot connect.
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
