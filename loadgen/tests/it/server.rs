//! A TLS server for tests with any handler: HTTP/1.1 or HTTP/2 by ALPN, and counts of connections.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use loadgen::admission::Target;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub type Body = BoxBody<Bytes, std::io::Error>;

#[derive(Debug, Default)]
pub struct Connections {
    pub accepted: AtomicUsize,
    /// Number of TLS sessions that were resumed.
    pub resumed: AtomicUsize,
    pub open: AtomicUsize,
}

/// A server's own certificate with its key.
pub struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    pub pem: String,
    pub key_pem: String,
}

impl Identity {
    pub fn new() -> Self {
        let names = ["127.0.0.1".to_owned(), "webhook.test.svc".to_owned()];
        let key = rcgen::generate_simple_self_signed(names).unwrap();
        Self {
            chain: vec![key.cert.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into(),
            pem: key.cert.pem(),
            key_pem: key.signing_key.serialize_pem(),
        }
    }

    /// The configuration of a server with all TLS versions and suites that offers these protocols.
    pub fn config(&self, alpn: &[&[u8]]) -> ServerConfig {
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        config
    }
}

/// A server that passes its connections, numbered from 1, to a handler after the TLS handshake.
pub struct Raw {
    pub target: Target,
    accepted: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Raw {
    pub async fn start<H, F>(config: ServerConfig, ca_pem: String, handler: H) -> Self
    where
        H: Fn(TlsStream<TcpStream>, usize) -> F + Clone + Send + Sync + 'static,
        F: Future + Send + 'static,
    {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mutate", listener.local_addr().unwrap());
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                while serving.try_join_next().is_some() {}
                let (number, acceptor) = (count.fetch_add(1, Ordering::SeqCst) + 1, acceptor.clone());
                let handler = handler.clone();
                serving.spawn(async move {
                    if let Ok(stream) = acceptor.accept(tcp).await {
                        // A client that hangs up ends it early.
                        handler(stream, number).await;
                    }
                });
            }
        });
        Self { target: Target { url, ca_pem, ..Target::default() }, accepted, _tasks: tasks }
    }

    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A running server; dropping the value ends it.
pub struct Server {
    pub address: SocketAddr,
    pub ca_pem: String,
    pub connections: Arc<Connections>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server with this handler on a free loopback port.
    pub async fn start<H, F>(alpn: &[&[u8]], handler: H) -> Self
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let identity = Identity::new();
        Self::with(identity.config(alpn), identity.pem, handler).await
    }

    /// Starts a server with this handler and its own TLS configuration.
    pub async fn with<H, F>(config: ServerConfig, ca_pem: String, handler: H) -> Self
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Connections::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, acceptor, Arc::clone(&connections), handler));
        Self { address, ca_pem, connections, _tasks: tasks }
    }

    pub fn accepted(&self) -> usize {
        self.connections.accepted.load(Ordering::SeqCst)
    }

    pub fn open(&self) -> usize {
        self.connections.open.load(Ordering::SeqCst)
    }
}

pub fn respond(status: u16, content_type: &str, body: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(body.into()).map_err(|never: Infallible| match never {}).boxed();
    Response::builder().status(status).header("Content-Type", content_type).body(body).unwrap()
}

/// Polls until the condition holds, and panics with `what` after 20 s.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < limit, "waited 20 s in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn accept<H, F>(listener: TcpListener, acceptor: TlsAcceptor, connections: Arc<Connections>, handler: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let mut serving = JoinSet::new();
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        while serving.try_join_next().is_some() {}
        serving.spawn(serve(tcp, acceptor.clone(), Arc::clone(&connections), handler.clone()));
    }
}

async fn serve<H, F>(tcp: TcpStream, acceptor: TlsAcceptor, connections: Arc<Connections>, handler: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    connections.accepted.fetch_add(1, Ordering::SeqCst);
    connections.open.fetch_add(1, Ordering::SeqCst);
    if let Ok(stream) = acceptor.accept(tcp).await {
        if stream.get_ref().1.handshake_kind() == Some(rustls::HandshakeKind::Resumed) {
            connections.resumed.fetch_add(1, Ordering::SeqCst);
        }
        let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let service = service_fn(move |request| {
            let answer = handler(request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        // Clients that go away are part of the tests.
        let _ = if h2 {
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            builder.serve_connection(TokioIo::new(stream), service).await
        } else {
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
        };
    }
    connections.open.fetch_sub(1, Ordering::SeqCst);
}
