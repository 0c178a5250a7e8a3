//! A server that says exactly what a test wants to be said, and remembers what it was asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::ready;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
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
    path: String,
    query: BTreeMap<String, String>,
    /// Which connection, from 1.
    pub connection: usize,
}

/// What is said.
pub enum Piece {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Nothing any more, and no end.
    Hold,
}

/// An answer.
pub struct Reply {
    status: u16,
    pieces: Vec<Piece>,
}

pub type Script = Arc<dyn Fn(&Ask) -> Reply + Send + Sync>;

/// The server and its client.
pub struct Play {
    pub asks: Arc<Mutex<Vec<Ask>>>,
    pub heard: Arc<Mutex<Vec<Value>>>,
    _client: Child,
    _tasks: JoinSet<()>,
    _directory: tempfile::TempDir,
}

impl Reply {
    pub fn list(revision: u32, items: &[Value]) -> Self {
        let metadata = json!({"resourceVersion": revision.to_string(), "continue": ""});
        Self::whole(200, &json!({"kind": "List", "metadata": metadata, "items": items}))
    }

    fn whole(status: u16, body: &Value) -> Self {
        Self { status, pieces: vec![Piece::Bytes(body.to_string().into_bytes())] }
    }

    pub fn watch(pieces: Vec<Piece>) -> Self {
        Self { status: 200, pieces }
    }

    pub fn refused(code: u16, reason: &str) -> Self {
        Self::whole(code, &json!({"kind": "Status", "code": code, "reason": reason, "message": reason}))
    }
}

impl Ask {
    pub fn asked(&self, key: &str) -> Option<&str> {
        self.query.get(key).map(String::as_str)
    }
}

pub fn object(name: &str, revision: u32) -> Value {
    json!({"metadata": {"uid": format!("uid-{name}"), "name": name, "namespace": "n", "resourceVersion": revision.to_string(),
        "annotations": {"text": "žluťoučký 漢字 🚀"}, "generation": 1}})
}

pub fn event(kind: &str, object: &Value) -> Piece {
    Piece::Bytes(format!("{}\n", json!({"type": kind, "object": object})).into_bytes())
}

pub fn error(code: u16) -> Piece {
    event("ERROR", &json!({"kind": "Status", "code": code, "reason": "Expired", "message": "too old"}))
}

pub fn bookmark(revision: u32) -> Piece {
    event("BOOKMARK", &json!({"metadata": {"resourceVersion": revision.to_string()}}))
}

pub fn pause_ms(ms: u64) -> Piece {
    Piece::Pause(Duration::from_millis(ms))
}

impl Play {
    /// Starts a client. `http` is `1` or `2`.
    pub fn start(arguments: &[&str], http: &str, script: Script) -> Self {
        let authority = mock_pki::Authority::generate("script test").unwrap();
        let mut tls = mock_pki::server_config(&authority.server(&["127.0.0.1"]).unwrap(), None).unwrap();
        let offered = if http == "2" { b"h2".to_vec() } else { b"http/1.1".to_vec() };
        Arc::make_mut(&mut tls).alpn_protocols = vec![offered];
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), authority.ca_pem()).unwrap();
        let kubeconfig = directory.path().join("config");
        let text = json!({
            "clusters": [{"name": "c", "cluster": {
                "server": format!("https://{address}"), "certificate-authority": "ca.pem"}}],
            "users": [{"name": "u", "user": {"token": "one"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        let (url, heard, mut tasks) = witness(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let server = Server { asks: Arc::default(), opened: Arc::default(), script, http2: http == "2" };
        let asks = server.asks.clone();
        tasks.spawn(server.run(listener, tls));
        let mut client = Command::new(env!("CARGO_BIN_EXE_planted-client"));
        client.args(arguments).args(["--http", http]).env("KUBECONFIG", kubeconfig);
        client.env("LONGHAUL_WITNESS_URL", url).env("LONGHAUL_WATCH", "things/v1").env_remove("LONGHAUL_NAMESPACE");
        let client = client.stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        Self { asks, heard, _client: client, _tasks: tasks, _directory: directory }
    }

    /// Whether the client said this of an object.
    pub fn told(&self, name: &str, change: &str) -> bool {
        self.heard.lock().iter().any(|line| line["name"] == name && line["change"] == change)
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
    opened: Arc<AtomicUsize>,
    script: Script,
    http2: bool,
}

impl Server {
    async fn run(self, listener: std::net::TcpListener, tls: Arc<rustls::ServerConfig>) {
        let listener = TcpListener::from_std(listener).unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(tls);
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (server, acceptor) = (self.clone(), acceptor.clone());
            connections.spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let number = server.opened.fetch_add(1, Ordering::Relaxed) + 1;
                let answering = server.clone();
                let answer = service_fn(move |request| ready(Ok::<_, Infallible>(answering.answer(&request, number))));
                let stream = TokioIo::new(stream);
                let _ = if server.http2 {
                    let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    http.serve_connection(stream, answer).await
                } else {
                    hyper::server::conn::http1::Builder::new().serve_connection(stream, answer).await
                };
            });
        }
    }

    fn answer(
        &self,
        request: &Request<hyper::body::Incoming>,
        connection: usize,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let query = request.uri().query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let query: BTreeMap<_, _> = query.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let kind = match (request.method().as_str(), query.contains_key("watch")) {
            ("GET", true) => "watch",
            ("GET", false) => "list",
            _ => "write",
        };
        let path = request.uri().path().to_owned();
        let ask = {
            let mut asks = self.asks.lock();
            let nth = asks.iter().filter(|ask| ask.kind == kind && ask.path == path).count() + 1;
            let ask = Ask { kind, nth, path, query, connection };
            asks.push(ask.clone());
            ask
        };
        let reply = (self.script)(&ask);
        Response::builder().status(reply.status).body(stream(reply.pieces)).unwrap()
    }
}

/// The pieces, one flush each.
fn stream(pieces: Vec<Piece>) -> BoxBody<Bytes, Infallible> {
    let (sender, mut receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        for piece in pieces {
            match piece {
                Piece::Bytes(bytes) => {
                    if sender.send(Ok(Frame::data(Bytes::from(bytes)))).await.is_err() {
                        return;
                    }
                }
                Piece::Pause(length) => sleep(length).await,
                Piece::Hold => return sender.closed().await,
            }
        }
    });
    StreamBody::new(futures_util::stream::poll_fn(move |context| receiver.poll_recv(context))).boxed()
}

/// A receiver of JSON lines.
fn witness(listener: std::net::TcpListener) -> (String, Arc<Mutex<Vec<Value>>>, JoinSet<()>) {
    let url = format!("http://{}/observations", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let lines = heard.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let lines = lines.clone();
            let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
                let lines = lines.clone();
                async move {
                    assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/observations"));
                    let body = request.into_body().collect().await?.to_bytes();
                    let parsed = body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
                    lines.lock().extend(parsed.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
                    Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::new())))
                }
            });
            // One connection at a time is enough for one client, and keeps the order.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        }
    });
    (url, heard, tasks)
}
