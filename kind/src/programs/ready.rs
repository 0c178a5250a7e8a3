//! Waiting until the programs of a control plane answer.
//!
//! If a program ends before it is ready, the error comes at once, with the last lines of the program's output.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Error;
use super::process::Process;

/// The time between two readiness requests: short enough to notice readiness soon, long enough to cost little CPU time.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// The time limit of one readiness request, from connecting to the last byte of the answer.
const QUESTION_DEADLINE: Duration = Duration::from_secs(5);
/// Maximum size of an answer in bytes; the answer of `/readyz?verbose` has a few KiB.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Why a program did not count as ready at its last readiness request.
#[derive(Debug, thiserror::Error)]
pub enum Unready {
    /// The program did not answer within the deadline.
    #[error("no answer")]
    Silent,
    /// No connection could be made, or the connection broke.
    #[error(transparent)]
    Connection(#[from] std::io::Error),
    /// The answer is no valid HTTP.
    #[error(transparent)]
    Http(#[from] hyper::Error),
    /// The request is not valid.
    #[error(transparent)]
    Question(#[from] http::Error),
    /// The answer could not be read to its end.
    #[error("{0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// The answer has an error status.
    #[error("{path} answered {status}")]
    Status {
        /// The path of the request.
        path: &'static str,
        status: StatusCode,
    },
    /// The answer to the request for the version is no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The answer contains no version.
    #[error("/version names none")]
    NoVersion,
}

/// A client of one API server.
pub(crate) struct Client {
    address: SocketAddr,
    tls: TlsConnector,
    token: String,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, ca_pem: &str, token: &str) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()).flatten() {
            roots.add(certificate)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { address, tls: TlsConnector::from(Arc::new(config)), token: token.to_owned() })
    }

    /// Requests `/readyz` and the version of the API server; returns the version if the server is ready.
    pub(crate) async fn version(&self) -> Result<String, Unready> {
        healthy("/readyz", self.get("/readyz").await?)?;
        let version: serde_json::Value = serde_json::from_slice(&healthy("/version", self.get("/version").await?)?)?;
        version["gitVersion"].as_str().map(str::to_owned).ok_or(Unready::NoVersion)
    }

    pub(crate) async fn object(&self, path: &'static str) -> Result<serde_json::Value, Unready> {
        Ok(serde_json::from_slice(&healthy(path, self.get(path).await?)?)?)
    }

    /// The HTTP status and the body of an answer, or the reason why no answer came.
    async fn get(&self, path: &str) -> Result<(StatusCode, Bytes), Unready> {
        let asking = async {
            let stream = TcpStream::connect(self.address).await?;
            let name = ServerName::IpAddress(self.address.ip().into());
            let stream = self.tls.connect(name, stream).await?;
            get(stream, &self.address.to_string(), path, Some(&self.token)).await
        };
        tokio::time::timeout(QUESTION_DEADLINE, asking).await.unwrap_or(Err(Unready::Silent))
    }
}

/// Waits until etcd is ready.
pub(crate) async fn etcd(
    process: &Process,
    address: SocketAddr,
    deadline: Instant,
    patience: Duration,
) -> Result<(), Error> {
    let ask = async || {
        let asking = async {
            let stream = TcpStream::connect(address).await?;
            get(stream, &address.to_string(), "/health", None).await
        };
        let answer = tokio::time::timeout(QUESTION_DEADLINE, asking).await.unwrap_or(Err(Unready::Silent));
        healthy("/health", answer?)
    };
    until(process, deadline, patience, ask).await.map(drop)
}

/// Waits until the API server is ready; returns its version.
pub(crate) async fn apiserver(
    process: &Process,
    client: &Client,
    deadline: Instant,
    patience: Duration,
) -> Result<String, Error> {
    let ask = async || client.version().await;
    until(process, deadline, patience, ask).await
}

/// Polls until the program gives a good answer, the program ends, or the time limit is reached.
async fn until<T>(
    process: &Process,
    deadline: Instant,
    patience: Duration,
    ask: impl AsyncFn() -> Result<T, Unready>,
) -> Result<T, Error> {
    loop {
        if let Some(status) = process.ended() {
            let (log, tail) = (process.log().to_owned(), process.tail());
            return Err(Error::Ended { program: process.program(), status, log, tail });
        }
        let reason = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(reason) => reason,
        };
        if Instant::now() >= deadline {
            let (log, tail) = (process.log().to_owned(), process.tail());
            let (program, waited_s) = (process.program(), patience.as_secs());
            return Err(Error::NotReady { program, waited_s, reason, log, tail });
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

fn healthy(path: &'static str, (status, body): (StatusCode, Bytes)) -> Result<Bytes, Unready> {
    if status == StatusCode::OK { Ok(body) } else { Err(Unready::Status { path, status }) }
}

async fn get<S>(stream: S, host: &str, path: &str, token: Option<&str>) -> Result<(StatusCode, Bytes), Unready>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut request = Request::get(path).header("host", host);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Empty::<Bytes>::new())?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok((status, body.map_err(Unready::Body)?.to_bytes()))
    };
    // The connection is driven here and ends with the exchange, so no task remains.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => return answer,
        _ = connection => {}
    }
    exchange.await
}
