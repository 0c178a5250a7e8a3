//! Common code of the tests: a server whose answers come from a function, a service on free ports, and waits with a
//! deadline.

pub mod api;
pub mod deployments;
pub mod raw;
pub mod registry;
#[cfg(feature = "verify")]
pub mod signed;
mod watches;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use service::config;
use service::run::{App, Options};
use service_core::wire::{Client, Limits, Origin, Protocol, Trust, client_config};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Time limit for every event that a test expects.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub type Body = BoxBody<Bytes, std::convert::Infallible>;
pub type Handler = std::sync::Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// A server on a free port; it ends on drop.
pub struct Server {
    pub address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server for HTTP/1.1, or for HTTP/2 without TLS.
    pub async fn start(http2: bool, handler: Handler) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let handler = handler.clone();
                connections.spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        let answer = handler(request);
                        async move { Ok::<_, std::convert::Infallible>(answer.await) }
                    });
                    let io = TokioIo::new(tcp);
                    if http2 {
                        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        let _ = builder.serve_connection(io, service).await;
                    } else {
                        let builder = hyper::server::conn::http1::Builder::new();
                        let _ = builder.serve_connection(io, service).await;
                    }
                });
            }
        });
        Self { address, _tasks: tasks }
    }
}

pub fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed()
}

pub fn status(code: u16, text: &str) -> Response<Body> {
    Response::builder().status(code).body(full(text.to_owned())).unwrap()
}

/// A running service and the folder with its files.
pub struct Service {
    pub app: App,
    pub folder: tempfile::TempDir,
    authority: Vec<u8>,
}

impl Service {
    /// Starts `role` with `config`. In `config`, `{dir}` stands for the folder with `tls.crt` and `tls.key`.
    pub async fn start(role: &str, config: &str, options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.path().join("tls.crt"), certified.cert.pem()).unwrap();
        std::fs::write(folder.path().join("tls.key"), certified.signing_key.serialize_pem()).unwrap();
        let config = config::parse(config, &folder.path().join("service.yaml")).unwrap();
        let app = App::start(role, config, options).await.unwrap();
        Self { app, folder, authority: certified.cert.pem().into_bytes() }
    }

    /// Starts the role `packages` with the API server at `address`; the texts `watch` and `more` are appended to the
    /// configuration.
    pub async fn watching(address: SocketAddr, watch: &str, more: &str, options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kube.yaml");
        kubeconfig(&path, address);
        let config = format!(
            "health: {{listen: \"127.0.0.1:0\"}}\nkubernetes: {{kubeconfig: \"{}\"}}\n\
             watch: {{backoff: {{initial: 20ms, max: 200ms}}{watch}}}\n{more}\n",
            path.display()
        );
        // The kubeconfig is read at the start; its folder may be removed.
        Self::start("packages", &config, options).await
    }

    /// The authority that issued the webhook's certificate, as PEM.
    pub fn authority(&self) -> &[u8] {
        &self.authority
    }

    pub fn webhook(&self, protocol: Protocol) -> Client {
        let tls = client_config(Trust::Pem(&self.authority), None).unwrap();
        let port = self.app.address("admission").unwrap().port();
        let origin = Origin { host: "127.0.0.1".into(), port, tls: Some(std::sync::Arc::new(tls)), server_name: None };
        Client::new(origin, protocol, Limits { open_max: 1000, idle_max: 4 })
    }

    /// Status and body of a path at the health listener.
    pub async fn health(&self, path: &str) -> (u16, String) {
        let address = self.app.health().unwrap();
        let origin = Origin { host: "127.0.0.1".into(), port: address.port(), tls: None, server_name: None };
        let client = Client::new(origin, Protocol::Http1, Limits { open_max: 1, idle_max: 0 });
        let request = Request::get(path).body(Bytes::new()).unwrap();
        let response = client.fetch(request, 1 << 20, deadline()).await.unwrap();
        (response.status().as_u16(), String::from_utf8(response.body().to_vec()).unwrap())
    }
}

pub fn deadline() -> tokio::time::Instant {
    tokio::time::Instant::now() + PATIENCE
}

/// Writes a kubeconfig that points to `address` without TLS.
pub fn kubeconfig(path: &Path, address: SocketAddr) {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: k, cluster: {{server: \"http://{address}\"}}}}]\n\
         users: [{{name: u, user: {{token: secret}}}}]\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
    );
    std::fs::write(path, text).unwrap();
}

/// Polls until `check` returns true; panics with `what` at the deadline.
pub async fn until(what: &str, check: impl Fn() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
