//! A simple client for HTTP/1.1 and HTTP/2 over TLS, which returns the data as the server sent them.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mock_kube::{Config, Server, User};
use mock_pki::{Authority, Pair, client_config};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longest wait for one operation of a test: long enough for every operation, and short enough that a hang is noticed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A server with two users, `subject` and `harness`.
pub struct World {
    pub server: Server,
    pub authority: Authority,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

pub struct Client {
    sender: Sender,
    token: Option<String>,
    pub content_type: &'static str,
    pub accept: &'static str,
    /// Headers that the client adds to its usual headers.
    pub more: &'static [(&'static str, &'static str)],
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Reads the lines of an open watch.
pub struct Lines {
    body: Incoming,
    buffer: BytesMut,
}

impl World {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a server; returns the server and a client with the user `harness`.
    pub async fn alone() -> (Self, Client) {
        let world = Self::start().await;
        let client = world.client(Protocol::Http1, "harness").await;
        (world, client)
    }

    /// Starts a server whose faults target the user `subject`.
    pub async fn aimed() -> Self {
        let world = Self::start().await;
        world.server.faults().target_users(["subject"]);
        world
    }

    pub async fn with(adapt: impl FnOnce(&mut Config)) -> Self {
        let authority = Authority::generate("test").unwrap();
        let mut config = Config::new();
        config.users = vec![User::admin("subject", "subject-token"), User::admin("harness", "harness-token")];
        config.crds = vec![crate::package_definition()];
        adapt(&mut config);
        let server = Server::start(config, &authority).await.unwrap();
        Self { server, authority }
    }

    pub async fn client(&self, protocol: Protocol, user: &str) -> Client {
        let mut client = self.bare(protocol, None).await;
        client.token = Some(format!("{user}-token"));
        client
    }

    pub async fn bare(&self, protocol: Protocol, pair: Option<&Pair>) -> Client {
        self.connect(self.server.address(), protocol, pair).await
    }

    /// A client of another endpoint of the same cluster.
    pub async fn client_of(&self, address: SocketAddr, user: &str) -> Client {
        self.client_at(address, Protocol::Http1, user).await
    }

    pub async fn client_at(&self, address: SocketAddr, protocol: Protocol, user: &str) -> Client {
        self.connect(address, protocol, None).await.with_token(&format!("{user}-token"))
    }

    /// Opens a connection without sending a request.
    pub async fn dial(&self, address: SocketAddr, protocol: Protocol, pair: Option<&Pair>) -> TlsStream<TcpStream> {
        let alpn = if protocol == Protocol::Http2 { "h2" } else { "http/1.1" };
        let tls = client_config(self.authority.ca_pem(), pair, &[alpn]).unwrap();
        let tcp = TcpStream::connect(address).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(tls).connect(name, tcp).await.unwrap()
    }

    async fn connect(&self, address: SocketAddr, protocol: Protocol, pair: Option<&Pair>) -> Client {
        let tls = self.dial(address, protocol, pair).await;
        let sender = match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(TokioIo::new(tls)).await.unwrap();
                tokio::spawn(connection);
                Sender::Http1(sender)
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(tls)).await.unwrap();
                tokio::spawn(connection);
                Sender::Http2(sender)
            }
        };
        Client { sender, token: None, content_type: "application/json", accept: "application/json", more: &[] }
    }
}

impl Client {
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub async fn send(&mut self, method: Method, path: &str, body: impl Into<Bytes>) -> Response<Incoming> {
        self.try_send(method, path, body).await.unwrap()
    }

    /// Sends a request; returns the status, warnings and body of the answer.
    pub async fn warned(&mut self, method: Method, path: &str, body: String) -> (u16, Vec<String>, Value) {
        let response = self.send(method, path, body).await;
        let status = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned());
        let warnings = warnings.collect();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, warnings, serde_json::from_slice(&body).unwrap())
    }

    pub async fn try_send(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> hyper::Result<Response<Incoming>> {
        let uri = match self.sender {
            Sender::Http1(_) => path.to_owned(),
            Sender::Http2(_) => format!("https://localhost{path}"),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::HOST, "localhost")
            .header(header::USER_AGENT, "test/1")
            .header(header::ACCEPT, self.accept)
            .header(header::CONTENT_TYPE, self.content_type);
        for (name, value) in self.more {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let answer = match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await?;
                tokio::time::timeout(PATIENCE, sender.send_request(request)).await
            }
            Sender::Http2(sender) => tokio::time::timeout(PATIENCE, sender.send_request(request)).await,
        };
        answer.expect("an answer in time")
    }

    /// Sends a request; returns the status and the JSON of the answer.
    pub async fn call(&mut self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let response = self.send(method, path, bytes).await;
        let status = response.status().as_u16();
        let body = tokio::time::timeout(PATIENCE, response.into_body().collect()).await.expect("a body in time");
        let body = body.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    pub async fn get(&mut self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, None).await
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        self.call(Method::POST, path, Some(body)).await
    }

    pub async fn put(&mut self, path: &str, body: &Value) -> (u16, Value) {
        self.call(Method::PUT, path, Some(body)).await
    }

    pub async fn delete(&mut self, path: &str) -> (u16, Value) {
        self.call(Method::DELETE, path, None).await
    }

    pub async fn patch(&mut self, path: &str, content_type: &'static str, body: &Value) -> (u16, Value) {
        self.content_type = content_type;
        let answer = self.call(Method::PATCH, path, Some(body)).await;
        self.content_type = "application/json";
        answer
    }

    /// Opens a watch that must be accepted.
    pub async fn watch(&mut self, path: &str) -> Lines {
        let response = self.send(Method::GET, path, Bytes::new()).await;
        assert_eq!(response.status().as_u16(), 200, "{path}");
        Lines { body: response.into_body(), buffer: BytesMut::new() }
    }
}

impl Lines {
    /// The next line of the watch as JSON: `Ok(None)` at a clean end, `Err` if the stream breaks.
    pub async fn next(&mut self) -> Result<Option<Value>, hyper::Error> {
        tokio::time::timeout(PATIENCE, self.read()).await.expect("a line in time")
    }

    async fn read(&mut self) -> Result<Option<Value>, hyper::Error> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return Ok(Some(serde_json::from_slice(&line).expect("a line is JSON")));
            }
            match self.body.frame().await {
                None => {
                    assert!(self.buffer.is_empty(), "a stream ends between lines");
                    return Ok(None);
                }
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    /// The next piece of the body as the server sent it: a chunk of HTTP/1.1, or a DATA frame of HTTP/2.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("a piece in time");
        Ok(frame.transpose()?.and_then(|frame| frame.into_data().ok()))
    }

    pub async fn raw_line(&mut self) -> Bytes {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return self.buffer.split_to(end + 1).freeze();
            }
            let piece = self.piece().await.unwrap().expect("one more piece");
            self.buffer.extend_from_slice(&piece);
        }
    }

    /// `(type, name, revision)` of the next event, which must exist.
    pub async fn event(&mut self) -> (String, String, u64) {
        let line = self.next().await.unwrap().expect("one more line");
        let meta = &line["object"]["metadata"];
        let revision = meta["resourceVersion"].as_str().unwrap_or("0").parse().unwrap();
        (line["type"].as_str().unwrap().to_owned(), meta["name"].as_str().unwrap_or_default().to_owned(), revision)
    }

    /// Whether no line arrives for the duration `so_long`.
    pub async fn is_silent(&mut self, so_long: Duration) -> bool {
        tokio::time::timeout(so_long, self.read()).await.is_err()
    }
}
