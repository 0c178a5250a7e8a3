//! The two API servers, and a client of them with one connection.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use kind::local::{self, Local};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Who the injector is.
const INJECTOR: &str = "admin";
/// Who this benchmark is, where requests are counted by user.
const BENCH: &str = "bench";

/// A running API server.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) about: String,
    pub(crate) address: SocketAddr,
    kubeconfig: String,
    tls: Arc<rustls::ClientConfig>,
    token: String,
    held: Held,
}

/// What ends it when dropped.
enum Held {
    Mock(Box<mock_kube::Server>),
    Real { _local: Box<Local>, _folder: tempfile::TempDir },
}

/// A connection that asks one thing after the other.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    token: String,
}

impl Server {
    pub(crate) async fn mock() -> Result<Self> {
        let authority = mock_pki::Authority::generate("longhaul bench")?;
        let mut config = mock_kube::Config::new();
        config.users = vec![mock_kube::User::admin(INJECTOR, INJECTOR), mock_kube::User::admin(BENCH, BENCH)];
        config.furnished_namespaces = true;
        let server = mock_kube::Server::start(config, &authority).await?;
        server.follow_requests(INJECTOR);
        let kubeconfig = server.kubeconfig(INJECTOR).context("the user is known")?;
        let tls = mock_pki::client_config(authority.ca_pem(), None, &["http/1.1"])?;
        let (address, token, about) = (server.address(), BENCH.to_owned(), "the mock API server".to_owned());
        Ok(Self { name: "mock", about, address, kubeconfig, tls, token, held: Held::Mock(Box::new(server)) })
    }

    /// etcd and kube-apiserver from a folder.
    pub(crate) async fn real(assets: PathBuf) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let local = Local::start(local::Config::new(assets, folder.path())).await?;
        let kubeconfig = local.kubeconfig(INJECTOR).context("the user is known")?;
        let tls = mock_pki::client_config(local.ca_pem(), None, &["http/1.1"])?;
        let token = local.token(INJECTOR).context("the user is known")?.to_owned();
        let (address, about) = (local.address(), format!("kube-apiserver {}", local.version()));
        let held = Held::Real { _local: Box::new(local), _folder: folder };
        let server = Self { name: "real", about, address, kubeconfig, tls, token, held };
        // No controller makes it here, and without it no Pod is taken.
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let path = "/api/v1/namespaces/default/serviceaccounts";
        server.connect(server.address).await?.call(Method::POST, path, Some(account.to_string())).await?;
        Ok(server)
    }

    /// A kubeconfig that leads through another port.
    pub(crate) fn kubeconfig(&self, through: SocketAddr) -> String {
        self.kubeconfig.replace(&format!(":{}", self.address.port()), &format!(":{}", through.port()))
    }

    /// Requests of the injector since the last call, where they can be known.
    pub(crate) fn requests(&self) -> Option<usize> {
        let Held::Mock(server) = &self.held else { return None };
        let (requests, lost) = server.take_requests(INJECTOR);
        (lost == 0).then_some(requests.len())
    }

    pub(crate) async fn connect(&self, through: SocketAddr) -> Result<Client> {
        let tcp = TcpStream::connect(through).await?;
        tcp.set_nodelay(true)?;
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect("127.0.0.1".try_into()?, tcp).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with its sender.
        tokio::spawn(connection);
        Ok(Client { sender, token: self.token.clone() })
    }
}

impl Client {
    /// Status and body of the answer.
    pub(crate) async fn call(&mut self, method: Method, path: &str, body: Option<String>) -> Result<(u16, Value)> {
        let media_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request =
            request.header("authorization", format!("Bearer {}", self.token)).header("content-type", media_type);
        self.sender.ready().await?;
        let answer = self.sender.send_request(request.body(Full::new(Bytes::from(body.unwrap_or_default())))?).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}
