//! A client over TLS that sends one request after the other. With HTTP/1.1 a client has its own connection; with HTTP/2
//! a client is a stream of a shared connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Time limit of an answer. The slowest answer is a list of 50,000 objects from a real server, which takes seconds on a
/// busy machine.
const DEADLINE: Duration = Duration::from_mins(2);
/// Read buffer of a connection: two TLS records. A small buffer is needed because ten thousand connections may be open.
const BUFFER_BYTES_MAX: usize = 32 << 10;
/// Maximum number of bytes of an error answer's body that are shown.
const ERROR_BYTES_MAX: usize = 300;

/// The address of a server, and the client's TLS settings and token.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Arc<rustls::ClientConfig>,
    /// The bearer token; empty for servers that identify clients by certificate or not at all.
    pub(crate) token: Arc<str>,
}

/// An HTTP/1.1 connection, or a stream of an HTTP/2 connection.
pub(crate) struct Client {
    send: Sender,
    token: Arc<str>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Endpoint {
    /// An endpoint whose certificate this CA has signed. The client sends the client certificate of `pair`, if there is
    /// one.
    pub(crate) fn new(address: SocketAddr, ca_pem: &str, pair: Option<&mock_pki::Pair>, token: &str) -> Result<Self> {
        let tls = mock_pki::client_config(ca_pem, pair, &["http/1.1"])?;
        Ok(Self { address, tls, token: token.into() })
    }

    /// A copy of this endpoint with HTTP/2 instead of HTTP/1.1.
    pub(crate) fn http2(&self) -> Self {
        let mut tls = rustls::ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Self { tls: Arc::new(tls), ..self.clone() }
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        let connecting = async {
            let tcp = TcpStream::connect(self.address).await?;
            tcp.set_nodelay(true)?;
            let name = rustls::pki_types::ServerName::IpAddress(self.address.ip().into());
            let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, tcp).await?;
            // A connection ends with the last of its senders.
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                let (send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
                tokio::spawn(connection);
                return anyhow::Ok(Sender::Http2(send));
            }
            let mut builder = http1::Builder::new();
            let (send, connection) = builder.max_buf_size(BUFFER_BYTES_MAX).handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            Ok(Sender::Http1(send))
        };
        let send = tokio::time::timeout(DEADLINE, connecting).await?.context("failed to connect")?;
        Ok(Client { send, token: Arc::clone(&self.token) })
    }
}

impl Client {
    /// Another client on the same connection. Several clients on one connection need HTTP/2.
    pub(crate) fn another(&self) -> Result<Self> {
        let Sender::Http2(send) = &self.send else { anyhow::bail!("the server does not speak HTTP/2") };
        Ok(Self { send: Sender::Http2(send.clone()), token: Arc::clone(&self.token) })
    }

    /// Sends a request and reads the head of the answer, with any status code.
    pub(crate) async fn open(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Response<Incoming>> {
        let media_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).header("content-type", media_type);
        let mut request = match &self.send {
            Sender::Http1(_) => request.uri(path).header("host", "localhost"),
            Sender::Http2(_) => request.uri(format!("https://localhost{path}")),
        };
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let request = request.body(Full::new(body.into()))?;
        let exchange = async {
            match &mut self.send {
                Sender::Http1(send) => {
                    send.ready().await?;
                    send.send_request(request).await
                }
                Sender::Http2(send) => {
                    send.ready().await?;
                    send.send_request(request).await
                }
            }
        };
        Ok(tokio::time::timeout(DEADLINE, exchange).await.context("no answer in time")??)
    }

    /// Sends a request and reads the whole answer. Returns status and body of the answer, with any status code.
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

    /// Sends a request. Returns the body of a 2xx answer; any other answer is an error with its text.
    pub(crate) async fn call(&mut self, method: Method, path: &str, body: impl Into<Bytes>) -> Result<Bytes> {
        let (status, body) = self.ask(method, path, body).await?;
        let shown = &body[..body.len().min(ERROR_BYTES_MAX)];
        ensure!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(shown));
        Ok(body)
    }

    /// Reads a 2xx answer to its end without keeping it. Returns the size of the answer's body in bytes.
    pub(crate) async fn size(&mut self, path: &str) -> Result<usize> {
        let mut answer = self.open(Method::GET, path, "").await?;
        ensure!(answer.status().is_success(), "{path}: {}", answer.status());
        let mut size = 0;
        while let Some(frame) =
            tokio::time::timeout(DEADLINE, answer.frame()).await.context("the answer stands still")?
        {
            size += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(size)
    }
}
