//! Whether a subject is ready: the service says so itself, a foreign command is known by what it does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// Time to ask again.
const READY_POLL: Duration = Duration::from_millis(50);

/// A controller may begin with leases and objects of its own. After so long it is taken as it is.
const ELSEWHERE_MAX: Duration = Duration::from_secs(15);

/// What the subject has asked the control plane for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It has sent no request.
    Nothing,
    /// Something, but not what is judged.
    Else,
    /// What is judged, or nobody can tell.
    Judged,
}

/// When a subject counts as ready.
#[derive(Debug, Clone)]
pub(super) enum Ready {
    /// `GET` of this address answers 200.
    Http(SocketAddr, &'static str),
    /// It has asked the control plane for what is judged and, where it has a webhook, accepts connections there.
    FirstRequest { webhook: Option<SocketAddr> },
    /// It answers TLS there, with the certificate that the run gave it.
    Tls(SocketAddr, Arc<ClientConfig>),
}

impl Ready {
    /// Where the subject says how it is, and what it knows.
    pub(super) fn health(&self) -> Option<SocketAddr> {
        match self {
            Self::Http(address, _) => Some(*address),
            Self::FirstRequest { .. } | Self::Tls(..) => None,
        }
    }
}

/// The subject took too long.
#[derive(Debug, thiserror::Error)]
#[error("the subject was not ready after {waited:?}: {missing}")]
pub(super) struct NotReady {
    waited: Duration,
    missing: String,
}

/// Polls until the subject is ready.
pub(super) async fn wait_until_ready(ready: Ready, deadline: Instant, asked: impl Fn() -> Asked) -> Result<()> {
    let began = Instant::now();
    let mut asks_since = None;
    loop {
        let missing = match &ready {
            Ready::Http(address, path) => http_ready(*address, path).await.err(),
            Ready::Tls(address, config) => tls_ready(*address, config).await.err(),
            Ready::FirstRequest { .. } if asked() == Asked::Nothing => {
                Some("it has sent no request to the control plane; does it read $KUBECONFIG?".to_owned())
            }
            Ready::FirstRequest { .. }
                if asked() == Asked::Else && asks_since.get_or_insert_with(Instant::now).elapsed() < ELSEWHERE_MAX =>
            {
                Some("it has not asked for what is judged yet".to_owned())
            }
            Ready::FirstRequest { webhook: Some(address) } => match tokio::net::TcpStream::connect(address).await {
                Ok(_) => None,
                Err(error) => Some(format!("its webhook port $LONGHAUL_WEBHOOK_PORT ({address}) is not open: {error}")),
            },
            Ready::FirstRequest { webhook: None } => None,
        };
        let Some(missing) = missing else { return Ok(()) };
        if Instant::now() >= deadline {
            return Err(NotReady { waited: began.elapsed(), missing }.into());
        }
        tokio::time::sleep(READY_POLL).await;
    }
}

/// One handshake. An API server trusts the certificate of a webhook or does not ask it.
async fn tls_ready(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<(), String> {
    let port = format!("its webhook port $LONGHAUL_WEBHOOK_PORT ({address})");
    let shake = async {
        let stream =
            tokio::net::TcpStream::connect(address).await.map_err(|error| format!("{port} is not open: {error}"))?;
        let name = ServerName::from(address.ip());
        let connected = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        connected
            .map(drop)
            .map_err(|error| format!("{port} does not answer TLS with the certificate of $LONGHAUL_TLS_CERT: {error}"))
    };
    tokio::time::timeout(Duration::from_secs(2), shake)
        .await
        .unwrap_or_else(|_| Err(format!("{port} answers nothing within 2 s")))
}

/// One `GET` over plain HTTP, without a client library: the answer's first line is all that matters.
pub(super) async fn http_ready(address: SocketAddr, path: &str) -> Result<(), String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    match tokio::time::timeout(Duration::from_secs(2), ask).await {
        Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 200") => Ok(()),
        Ok(Ok(answer)) => Err(format!("GET http://{address}{path} answers `{}`", answer.lines().next().unwrap_or(""))),
        Ok(Err(error)) => Err(format!("GET http://{address}{path}: {error}")),
        Err(_) => Err(format!("GET http://{address}{path} does not answer within 2 s")),
    }
}
