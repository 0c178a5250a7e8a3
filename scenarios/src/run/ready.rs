//! The readiness of a subject. The service reports its own readiness; the readiness of any other subject follows from
//! its requests or from a page.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::deploy::Rollout;
use crate::fetch;
use crate::subject::Line;

/// Pause between two checks of the subject's readiness.
const READY_POLL: Duration = Duration::from_millis(50);

/// If a controller requests only leases and objects for itself for this time, the controller counts as ready.
const ELSEWHERE_MAX: Duration = Duration::from_secs(15);

/// The requests that the subject has sent to the control plane so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requested {
    Nothing,
    /// The subject has sent requests, but no request for a judged resource.
    Else,
    /// The subject has sent a request for a judged resource, or its requests are unknown.
    Judged,
}

/// The address at which the subject serves reviews.
#[derive(Debug, Clone)]
pub(super) struct Port {
    at: String,
    /// The name that the subject's certificate must have.
    name: ServerName<'static>,
    /// The text for the address in messages.
    called: String,
    /// The CA that must have signed the certificate, as text for messages.
    trusted: &'static str,
}

impl Port {
    /// An address that this run chose.
    pub(super) fn ours(address: SocketAddr) -> Self {
        let called = format!("its webhook port $LONGHAUL_WEBHOOK_PORT ({address})");
        let (at, name) = (address.to_string(), ServerName::from(address.ip()));
        Self { at, name, called, trusted: "the certificate of $LONGHAUL_TLS_CERT" }
    }

    /// The address of a webhook that already runs.
    pub(super) fn theirs(url: &str, server_name: Option<&str>) -> Result<Self> {
        let (host, port) =
            crate::scenario::host_and_port(url).with_context(|| format!("`url: {url}` is no address"))?;
        let name = ServerName::try_from(server_name.map_or_else(|| host.clone(), str::to_owned))
            .with_context(|| format!("`url`: `{host}` is no name of a host"))?;
        let at = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Ok(Self { at, name, called: format!("its webhook ({url})"), trusted: "a certificate that `ca` signed" })
    }
}

/// The condition for a subject to count as ready.
#[derive(Debug, Clone)]
pub(super) enum Ready {
    /// `GET` of this path at this address answers 200.
    Http(SocketAddr, &'static str),
    /// The subject has requested a judged resource and, if it has a webhook, accepts connections.
    FirstRequest {
        webhook: Option<Port>,
        /// Whether a request for any resource is enough to be ready.
        any: bool,
    },
    /// `GET` of this URL (host with port, and path) answers 200 to 399.
    Page(String, String),
    Line(Arc<Line>),
    /// The subject answers TLS at this address with a trusted certificate.
    Tls(Port, Arc<ClientConfig>),
    Rollout(Arc<Rollout>),
}

impl Ready {
    /// The readiness condition that the subject's page at this URL answers. The error explains why the URL is wrong.
    pub(super) fn page(url: &str) -> Result<Self, String> {
        let (host, uri) = fetch::page_address(url, "http://127.0.0.1:8081/readyz")?;
        Ok(Self::Page(host, uri.path_and_query().map_or("/", |path| path.as_str()).to_owned()))
    }

    /// The address of the subject's health and state pages.
    pub(super) fn health(&self) -> Option<SocketAddr> {
        match self {
            Self::Http(address, _) => Some(*address),
            Self::FirstRequest { .. } | Self::Tls(..) | Self::Page(..) | Self::Line(_) | Self::Rollout(_) => None,
        }
    }
}

/// The subject did not become ready in time.
#[derive(Debug, thiserror::Error)]
#[error("the subject was not ready after {waited:?}: {missing}")]
pub(super) struct NotReady {
    waited: Duration,
    missing: String,
}

impl NotReady {
    /// The unmet part of the readiness condition.
    pub(super) fn missing(&self) -> &str {
        &self.missing
    }

    pub(super) fn waited_ms(&self) -> u64 {
        crate::clock::millis(self.waited)
    }
}

pub(super) async fn wait_until_ready(
    ready: Ready,
    deadline: Instant,
    mut asked: impl FnMut() -> Requested,
) -> Result<()> {
    let began = Instant::now();
    let mut asks_since = None;
    loop {
        let missing = match &ready {
            Ready::Http(address, path) => http_ready(*address, path).await.err(),
            Ready::Tls(port, config) => tls_ready(port, config).await.err(),
            Ready::Rollout(rollout) => rollout.missing().await,
            Ready::Page(host, path) => page_ready(host, path).await.err(),
            Ready::Line(line) if line.is_seen() => None,
            Ready::Line(line) => Some(format!("it has written no line with `{}` in it", line.text())),
            Ready::FirstRequest { .. } if asked() == Requested::Nothing => {
                Some("it has sent no request to the control plane; does it read $KUBECONFIG?".to_owned())
            }
            Ready::FirstRequest { any: false, .. }
                if asked() == Requested::Else
                    && asks_since.get_or_insert_with(Instant::now).elapsed() < ELSEWHERE_MAX =>
            {
                Some("it has not yet requested the judged objects".to_owned())
            }
            Ready::FirstRequest { webhook: Some(port), .. } => match tokio::net::TcpStream::connect(&port.at).await {
                Ok(_) => None,
                Err(error) => Some(format!("{} is not open: {error}", port.called)),
            },
            Ready::FirstRequest { webhook: None, .. } => None,
        };
        let Some(missing) = missing else { return Ok(()) };
        if Instant::now() >= deadline {
            return Err(NotReady { waited: began.elapsed(), missing }.into());
        }
        tokio::time::sleep(READY_POLL).await;
    }
}

/// Makes one TLS handshake. An API server does not call a webhook whose certificate it does not trust.
async fn tls_ready(port: &Port, config: &Arc<ClientConfig>) -> Result<(), String> {
    let Port { at, name, called, trusted } = port;
    let shake = async {
        let stream =
            tokio::net::TcpStream::connect(at).await.map_err(|error| format!("{called} is not open: {error}"))?;
        let connected = TlsConnector::from(Arc::clone(config)).connect(name.clone(), stream).await;
        connected.map(drop).map_err(|error| format!("{called} does not answer TLS with {trusted}: {error}"))
    };
    tokio::time::timeout(Duration::from_secs(2), shake)
        .await
        .unwrap_or_else(|_| Err(format!("{called} answers nothing within 2 s")))
}

pub(super) async fn http_ready(address: SocketAddr, path: &str) -> Result<(), String> {
    probe(&address.to_string(), path, 200..=200).await
}

/// Whether a page answers with a status that a kubelet accepts.
async fn page_ready(host: &str, path: &str) -> Result<(), String> {
    probe(host, path, 200..=399).await
}

/// Sends one `GET` over plain HTTP, without a client library, because only the first line of the answer matters.
async fn probe(host: &str, path: &str, well: RangeInclusive<u16>) -> Result<(), String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(host).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    match tokio::time::timeout(Duration::from_secs(2), ask).await {
        Ok(Ok(answer)) if status(&answer).is_some_and(|status| well.contains(&status)) => Ok(()),
        Ok(Ok(answer)) => Err(format!("GET http://{host}{path} answers `{}`", answer.lines().next().unwrap_or(""))),
        Ok(Err(error)) => Err(format!("GET http://{host}{path}: {error}")),
        Err(_) => Err(format!("GET http://{host}{path} does not answer within 2 s")),
    }
}

/// The status code in the first line of an answer, in HTTP/1.0 or HTTP/1.1.
fn status(answer: &str) -> Option<u16> {
    answer.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_that_of_the_first_line() {
        assert_eq!(status("HTTP/1.1 200 OK\r\nX: 1\r\n"), Some(200));
        assert_eq!(status("HTTP/1.0 503 Service Unavailable\r\n"), Some(503));
        assert_eq!((status("SSH-2.0-x\r\n"), status("HTTP/1.1\r\n"), status("")), (None, None, None));
    }

    /// With `request: first`, a request for any resource makes a subject ready, otherwise only a request for a judged
    /// resource.
    #[tokio::test]
    async fn any_request_is_enough_where_it_is_said() {
        let now = Instant::now();
        let ready = |any| Ready::FirstRequest { webhook: None, any };
        assert!(wait_until_ready(ready(true), now, || Requested::Else).await.is_ok());
        let error = wait_until_ready(ready(false), now, || Requested::Else).await.unwrap_err().to_string();
        assert!(error.contains("not yet requested the judged objects"), "{error}");
        let error = wait_until_ready(ready(true), now, || Requested::Nothing).await.unwrap_err().to_string();
        assert!(error.contains("no request to the control plane"), "{error}");
    }
}
