//! A client with one connection, over TLS and HTTP/1.1, that asks one thing after the other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The slowest answer, a list of 50,000 objects from a real server on a busy machine, takes seconds.
const DEADLINE: Duration = Duration::from_mins(2);
/// What a connection reads at once: two TLS records. There may be ten thousand connections.
const BUFFER_BYTES_MAX: usize = 32 << 10;
/// How much of an error's body is shown.
const ERROR_BYTES_MAX: usize = 300;

/// Where to connect, and as whom.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Arc<rustls::ClientConfig>,
    /// Servers that know their clients by something else need none.
    pub(crate) token: String,
}

/// One connection.
pub(crate) struct Client {
    send: SendRequest<Full<Bytes>>,
    token: String,
}

impl Endpoint {
    /// A server with a certificate of this authority, which is shown the pair if there is one.
    pub(crate) fn new(address: SocketAddr, ca_pem: &str, pair: Option<&mock_pki::Pair>, token: &str) -> Result<Self> {
        let tls = mock_pki::client_config(ca_pem, pair, &["http/1.1"])?;
        Ok(Self { address, tls, token: token.to_owned() })
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        let connecting = async {
            let tcp = TcpStream::connect(self.address).await?;
            tcp.set_nodelay(true)?;
            let name = rustls::pki_types::ServerName::IpAddress(self.address.ip().into());
            let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, tcp).await?;
            anyhow::Ok(http1::Builder::new().max_buf_size(BUFFER_BYTES_MAX).handshake(TokioIo::new(stream)).await?)
        };
        let (send, connection) = tokio::time::timeout(DEADLINE, connecting).await?.context("failed to connect")?;
        // It ends with its sender.
        tokio::spawn(connection);
        Ok(Client { send, token: self.token.clone() })
    }
}

impl Client {
    /// Sends a request and reads the head of its answer, whatever it is.
    pub(crate) async fn open(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Response<Incoming>> {
        let media_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        request = request.header("content-type", media_type);
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let request = request.body(Full::new(body.into()))?;
        let exchange = async {
            self.send.ready().await?;
            self.send.send_request(request).await
        };
        Ok(tokio::time::timeout(DEADLINE, exchange).await.context("no answer in time")??)
    }

    /// Status and body of the answer, whatever it is.
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<(StatusCode, Bytes)> {
        let answer = self.open(method, path, body).await?;
        let status = answer.status();
        let body = tokio::time::timeout(DEADLINE, answer.into_body().collect());
        Ok((status, body.await.context("the answer stands still")??.to_bytes()))
    }

    /// The body of an answer of 2xx; any other is an error with its text.
    pub(crate) async fn call(&mut self, method: Method, path: &str, body: impl Into<Bytes>) -> Result<Bytes> {
        let (status, body) = self.ask(method, path, body).await?;
        let shown = &body[..body.len().min(ERROR_BYTES_MAX)];
        ensure!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(shown));
        Ok(body)
    }
}
