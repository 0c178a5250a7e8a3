//! A server that says exactly what a test wants to be said, and remembers what it was asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// What was asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// `list`, `watch` or `write`.
    pub kind: &'static str,
    /// Which one of its kind and path, from 1.
    pub nth: usize,
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub token: String,
    /// Which connection, from 1.
    pub connection: usize,
}

/// What is said.
pub enum Piece {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Nothing any more, and no end.
    Hold,
    /// The connection breaks within the body.
    Cut,
}

/// An answer. Without a status nothing is answered at all.
pub struct Reply {
    pub status: Option<u16>,
    pub retry_after: Option<u64>,
    pub delay: Duration,
    pub pieces: Vec<Piece>,
}

pub type Script = Arc<dyn Fn(&Ask) -> Reply + Send + Sync>;

/// The server and its client.
pub struct Play {
    pub asks: Arc<Mutex<Vec<Ask>>>,
    pub heard: Arc<Mutex<Vec<Value>>>,
    pub client: Child,
    /// Connections that are open.
    pub open: Arc<AtomicUsize>,
    /// No new connection gets further than its first byte.
    pub refuse: Arc<AtomicBool>,
    pub token_file: PathBuf,
    _tasks: JoinSet<()>,
    _directory: tempfile::TempDir,
}

impl Reply {
    pub fn body(text: impl Into<Vec<u8>>) -> Self {
        Self { status: Some(200), retry_after: None, delay: Duration::ZERO, pieces: vec![Piece::Bytes(text.into())] }
    }

    pub fn list(revision: u32, items: &[Value]) -> Self {
        Self::page(revision, items, "")
    }

    pub fn page(revision: u32, items: &[Value], next: &str) -> Self {
        let metadata = json!({"resourceVersion": revision.to_string(), "continue": next});
        Self::body(json!({"kind": "List", "metadata": metadata, "items": items}).to_string())
    }

    pub fn watch(pieces: Vec<Piece>) -> Self {
        Self { pieces, ..Self::body("") }
    }

    pub fn refused(code: u16, reason: &str) -> Self {
        let status = json!({"kind": "Status", "code": code, "reason": reason, "message": reason});
        Self { status: Some(code), ..Self::body(status.to_string()) }
    }

    pub fn never() -> Self {
        Self { status: None, ..Self::body("") }
    }

    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

impl Ask {
    pub fn asked(&self, key: &str) -> Option<&str> {
        self.query.get(key).map(String::as_str)
    }
}

pub fn object(name: &str, revision: u32) -> Value {
    object_of(&format!("uid-{name}"), name, revision)
}

pub fn object_of(uid: &str, name: &str, revision: u32) -> Value {
    json!({"metadata": {"uid": uid, "name": name, "namespace": "n", "resourceVersion": revision.to_string(),
        "annotations": {"text": "žluťoučký 漢字 🚀"}, "generation": 1}})
}

pub fn event(kind: &str, object: &Value) -> Piece {
    Piece::Bytes(format!("{}\n", json!({"type": kind, "object": object})).into_bytes())
}

pub fn error(code: u16) -> Piece {
    event("ERROR", &json!({"kind": "Status", "code": code, "reason": "Expired", "message": "too old"}))
}

pub fn bookmark(revision: u32, initial_end: bool) -> Piece {
    let annotations = if initial_end { json!({"k8s.io/initial-events-end": "true"}) } else { json!({}) };
    event("BOOKMARK", &json!({"metadata": {"resourceVersion": revision.to_string(), "annotations": annotations}}))
}

pub fn pause_ms(ms: u64) -> Piece {
    Piece::Pause(Duration::from_millis(ms))
}

impl Play {
    /// Starts a client. `http` is `1` or `2`; on 2 a connection has `streams` streams.
    pub fn start(arguments: &[&str], watch: &str, http: &str, streams: u32, script: Script) -> Self {
        let authority = mock_pki::Authority::generate("script test").unwrap();
        let mut tls = mock_pki::server_config(&authority.server(&["127.0.0.1"]).unwrap(), None).unwrap();
        let offered = if http == "2" { b"h2".to_vec() } else { b"http/1.1".to_vec() };
        Arc::make_mut(&mut tls).alpn_protocols = vec![offered];
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let token_file = directory.path().join("token");
        std::fs::write(&token_file, "one").unwrap();
        std::fs::write(directory.path().join("ca.pem"), authority.ca_pem()).unwrap();
        let kubeconfig = directory.path().join("config");
        let text = json!({
            "clusters": [{"name": "c", "cluster": {
                "server": format!("https://{address}"), "certificate-authority": "ca.pem"}}],
            "users": [{"name": "u", "user": {"tokenFile": "token"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        let (url, heard, mut tasks) = crate::world::witness(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let server = Server {
            asks: Arc::default(),
            open: Arc::default(),
            opened: Arc::default(),
            refuse: Arc::default(),
            script,
            http2: http == "2",
            streams,
        };
        let (asks, open, refuse) = (server.asks.clone(), server.open.clone(), server.refuse.clone());
        tasks.spawn(server.run(listener, tls));
        let mut client = Command::new(env!("CARGO_BIN_EXE_planted-client"));
        client.args(arguments).args(["--http", http]).env("KUBECONFIG", kubeconfig);
        client.env("LONGHAUL_WITNESS_URL", url).env("LONGHAUL_WATCH", watch).env_remove("LONGHAUL_NAMESPACE");
        let client = client.stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        Self { asks, heard, client, open, refuse, token_file, _tasks: tasks, _directory: directory }
    }

    /// Whether the client said this of an object.
    pub fn told(&self, name: &str, change: &str) -> bool {
        self.heard.lock().iter().any(|line| line["name"] == name && line["change"] == change)
    }

    /// The changes of an object, in order.
    pub fn story(&self, name: &str) -> Vec<String> {
        let heard = self.heard.lock();
        let lines = heard.iter().filter(|line| line["name"] == name);
        lines.map(|line| format!("{}@{}", text(&line["change"]), text(&line["resourceVersion"]))).collect()
    }

    /// How often something was asked.
    pub fn count(&self, kind: &str) -> usize {
        self.asks.lock().iter().filter(|ask| ask.kind == kind).count()
    }

    /// The value of a query key in the n-th request of a kind.
    pub fn asked(&self, kind: &str, nth: usize, key: &str) -> Option<String> {
        let asks = self.asks.lock();
        let ask = asks.iter().filter(|ask| ask.kind == kind).nth(nth - 1)?;
        ask.asked(key).map(str::to_owned)
    }
}

#[derive(Clone)]
struct Server {
    asks: Arc<Mutex<Vec<Ask>>>,
    open: Arc<AtomicUsize>,
    opened: Arc<AtomicUsize>,
    refuse: Arc<AtomicBool>,
    script: Script,
    http2: bool,
    streams: u32,
}

impl Server {
    async fn run(self, listener: std::net::TcpListener, tls: Arc<rustls::ServerConfig>) {
        let listener = TcpListener::from_std(listener).unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(tls);
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if self.refuse.load(Ordering::Relaxed) {
                continue;
            }
            let (server, acceptor) = (self.clone(), acceptor.clone());
            connections.spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let number = server.opened.fetch_add(1, Ordering::Relaxed) + 1;
                server.open.fetch_add(1, Ordering::Relaxed);
                let answering = server.clone();
                let answer = service_fn(move |request| answering.clone().answer(request, number));
                let stream = TokioIo::new(stream);
                let _ = if server.http2 {
                    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    http.max_concurrent_streams(server.streams).serve_connection(stream, answer).await
                } else {
                    hyper::server::conn::http1::Builder::new().serve_connection(stream, answer).await
                };
                server.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    async fn answer(
        self,
        request: Request<hyper::body::Incoming>,
        connection: usize,
    ) -> Result<Response<BoxBody<Bytes, std::io::Error>>, Infallible> {
        let query = request.uri().query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let query: BTreeMap<_, _> = query.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let kind = match (request.method().as_str(), query.contains_key("watch")) {
            ("GET", true) => "watch",
            ("GET", false) => "list",
            _ => "write",
        };
        let path = request.uri().path().to_owned();
        let token = request.headers()["authorization"].to_str().unwrap().replace("Bearer ", "");
        let ask = {
            let mut asks = self.asks.lock();
            let nth = asks.iter().filter(|ask| ask.kind == kind && ask.path == path).count() + 1;
            let ask = Ask { kind, nth, path, query, token, connection };
            asks.push(ask.clone());
            ask
        };
        let reply = (self.script)(&ask);
        sleep(reply.delay).await;
        let Some(status) = reply.status else { return std::future::pending().await };
        let mut response = Response::builder().status(status);
        if let Some(seconds) = reply.retry_after {
            response = response.header("retry-after", seconds);
        }
        let body = if kind == "watch" && status == 200 {
            stream(reply.pieces)
        } else {
            let whole = reply.pieces.into_iter().flat_map(|piece| match piece {
                Piece::Bytes(bytes) => bytes,
                _ => Vec::new(),
            });
            Full::new(whole.collect::<Vec<u8>>().into()).map_err(|never| match never {}).boxed()
        };
        Ok(response.body(body).unwrap())
    }
}

/// The pieces, one flush each.
fn stream(pieces: Vec<Piece>) -> BoxBody<Bytes, std::io::Error> {
    let (sender, mut receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        for piece in pieces {
            let frame = match piece {
                Piece::Bytes(bytes) => Ok(Frame::data(Bytes::from(bytes))),
                Piece::Pause(length) => {
                    sleep(length).await;
                    continue;
                }
                Piece::Hold => return sender.closed().await,
                Piece::Cut => Err(std::io::Error::other("cut")),
            };
            if sender.send(frame).await.is_err() {
                return;
            }
        }
    });
    StreamBody::new(futures_util::stream::poll_fn(move |context| receiver.poll_recv(context))).boxed()
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
