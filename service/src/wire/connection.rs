//! One connection: TCP, TLS, HTTP handshake, and the task that moves its bytes.
//!
//! Owns the driver task; dropping a connection aborts it and closes the socket.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::{Error, Origin};

/// A PING after so long without a frame, and so long for its answer: a dead peer is found in 20 s.
const HTTP2_PING: Duration = Duration::from_secs(10);
/// Flow-control windows: one page of a list fits a stream, and a slow watch cannot starve the other streams.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 1 << 20;
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// The name of HTTP/2 in a TLS handshake (RFC 9113, section 3.2).
pub(super) const ALPN_HTTP2: &[u8] = b"h2";

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// An HTTP/1.1 connection.
pub(super) struct Http1 {
    sender: http1::SendRequest<Full<Bytes>>,
    _driver: AbortOnDropHandle<()>,
}

/// An HTTP/2 connection.
pub(super) struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    _driver: AbortOnDropHandle<()>,
}

impl Http1 {
    pub async fn connect(origin: &Origin) -> Result<Self, Error> {
        let (io, _) = dial(origin).await?;
        let (sender, connection) = http1::Builder::new().handshake(TokioIo::new(io)).await?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::trace!(%error, "connection ended");
            }
        });
        Ok(Self { sender, _driver: AbortOnDropHandle::new(driver) })
    }

    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, hyper::Error> {
        self.sender.ready().await?;
        self.sender.send_request(request).await
    }

    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }
}

impl Http2 {
    pub async fn connect(origin: &Origin) -> Result<Self, Error> {
        let (io, agreed) = dial(origin).await?;
        if !agreed {
            return Err(Error::NoHttp2 { authority: origin.authority() });
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(HTTP2_PING)
            .keep_alive_timeout(HTTP2_PING)
            .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
            .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
            .handshake(TokioIo::new(io))
            .await?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::trace!(%error, "connection ended");
            }
        });
        Ok(Self { sender, _driver: AbortOnDropHandle::new(driver) })
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, hyper::Error> {
        let mut sender = self.sender.clone();
        sender.ready().await?;
        sender.send_request(request).await
    }

    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }
}

/// Opens the byte stream; the flag says whether HTTP/2 was agreed (plain TCP: assumed).
async fn dial(origin: &Origin) -> Result<(Box<dyn Io>, bool), Error> {
    let authority = origin.authority();
    let tcp = TcpStream::connect((origin.host.as_str(), origin.port)).await;
    let tcp = tcp.map_err(|source| Error::Connect { authority: authority.clone(), source })?;
    // Requests are small and written whole; waiting for more would only add delay.
    let _ = tcp.set_nodelay(true);
    let Some(tls) = &origin.tls else { return Ok((Box::new(tcp), true)) };
    let invalid = |text: String| std::io::Error::new(std::io::ErrorKind::InvalidInput, text);
    let name = origin.server_name.as_deref().unwrap_or(&origin.host);
    let name = ServerName::try_from(name.to_owned())
        .map_err(|error| Error::Tls { authority: authority.clone(), source: invalid(error.to_string()) })?;
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::clone(tls));
    let stream = connector.connect(name, tcp).await.map_err(|source| Error::Tls { authority, source })?;
    let agreed = stream.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2);
    Ok((Box::new(stream), agreed))
}
