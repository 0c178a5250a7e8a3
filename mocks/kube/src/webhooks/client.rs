//! The connections to webhooks: HTTP/1.1 over TLS, kept open as by kube-apiserver.
//!
//! Owns the pool of connections: at most 25 idle connections to one webhook, each for 90 seconds. As in a real server,
//! the number of open connections is not limited. Their number is still bounded: each call of a webhook has a deadline,
//! and the number of requests to this server is limited.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

/// Maximum number of idle connections to one webhook: client-go's `MaxIdleConnsPerHost`.
const IDLE_MAX: usize = 25;
/// How long an idle connection is kept: Go's `IdleConnTimeout` in kube-apiserver.
const IDLE_FOR: Duration = Duration::from_secs(90);
const DIAL: Duration = Duration::from_secs(30);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Size limit of a webhook's answer: enough for a patch of the largest object in base64.
const ANSWER_MAX_BYTES: usize = 8 * 1024 * 1024;

/// The address and the TLS settings of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub host: String,
    pub port: u16,
    pub server_name: String,
    pub ca_pem: String,
}

type Sender = SendRequest<Full<Bytes>>;

#[derive(Default)]
pub(crate) struct Client {
    idle: Mutex<HashMap<Target, Vec<(Sender, Instant)>>>,
    configs: Mutex<HashMap<String, Arc<rustls::ClientConfig>>>,
    /// The clock for checking webhooks' certificates, if it is not the machine's.
    pace: OnceLock<mock_pki::Pace>,
    /// The tasks that drive connections, which end when the server is dropped.
    drivers: Mutex<JoinSet<()>>,
}

/// Why a review could not be posted or its answer could not be read, with the real server's messages.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("Post \"https://{server_name}:{port}{path_and_query}\": {why}")]
    Post {
        server_name: String,
        port: u16,
        path_and_query: String,
        #[source]
        why: Why,
    },
}

/// A complete answer of a webhook, decompressed.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: http::StatusCode,
    pub content_type: Option<http::HeaderValue>,
    pub body: Bytes,
}

/// Why the connection between server and webhook failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Why {
    #[error("dial tcp: i/o timeout")]
    DialTimeout,
    #[error("dial tcp {host}:{port}: {source}")]
    Dial { host: String, port: u16, source: std::io::Error },
    #[error("{}", chain(.0))]
    Bundle(#[source] mock_pki::Error),
    #[error(transparent)]
    ServerName(#[from] rustls_pki_types::InvalidDnsNameError),
    #[error("net/http: TLS handshake timeout")]
    HandshakeTimeout,
    #[error("tls: failed to verify certificate: {0}")]
    Handshake(#[source] std::io::Error),
    #[error("{}", chain(.0))]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error("{0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("gzip: invalid header: {0}")]
    Packed(String),
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Sets the clock for checking webhooks' certificates; only the first call has an effect.
    pub fn keep_time(&self, pace: mock_pki::Pace) {
        let _ = self.pace.set(pace);
    }

    /// Posts a review to a webhook; returns the answer unchecked.
    pub(crate) async fn post(&self, target: &Target, path_and_query: &str, body: Bytes) -> Result<Reply, Error> {
        let failed = |why: Why| Error::Post {
            server_name: target.server_name.clone(),
            port: target.port,
            path_and_query: path_and_query.to_owned(),
            why,
        };
        loop {
            let (mut sender, reused) = match self.take_idle(target) {
                Some(sender) => (sender, true),
                None => (self.connect(target).await.map_err(failed)?, false),
            };
            let request = request(target, path_and_query, body.clone()).map_err(|error| failed(error.into()))?;
            let response = match sender.try_send_request(request).await {
                Ok(response) => response,
                // A kept connection that was closed before any byte was sent: take the next one.
                Err(error) if reused && error.message().is_some() => continue,
                Err(error) => return Err(failed(error.into_error().into())),
            };
            let (status, headers) = (response.status(), response.headers());
            let content_type = headers.get(header::CONTENT_TYPE).cloned();
            // Compared as in Go's transport.
            let is_packed = headers
                .get(header::CONTENT_ENCODING)
                .is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"gzip"));
            let collected = Limited::new(response.into_body(), ANSWER_MAX_BYTES).collect().await;
            let mut body = collected.map_err(|error| failed(Why::Body(error)))?.to_bytes();
            self.give_back(target, sender);
            if is_packed {
                let plain = go_rules::admission::unpack(&body, ANSWER_MAX_BYTES);
                body = plain.map_err(|problem| failed(Why::Packed(format!("{problem:?}"))))?.into();
            }
            return Ok(Reply { status, content_type, body });
        }
    }

    fn take_idle(&self, target: &Target) -> Option<Sender> {
        let mut idle = self.idle.lock();
        let list = idle.get_mut(target)?;
        while let Some((sender, since)) = list.pop() {
            if !sender.is_closed() && since.elapsed() < IDLE_FOR {
                return Some(sender);
            }
        }
        None
    }

    fn give_back(&self, target: &Target, sender: Sender) {
        let mut idle = self.idle.lock();
        // Webhooks that were reconfigured must not leave connections behind for ever.
        idle.retain(|_, list| {
            list.retain(|(sender, since)| !sender.is_closed() && since.elapsed() < IDLE_FOR);
            !list.is_empty()
        });
        let list = idle.entry(target.clone()).or_default();
        if list.len() < IDLE_MAX && !sender.is_closed() {
            list.push((sender, Instant::now()));
        }
    }

    async fn connect(&self, target: &Target) -> Result<Sender, Why> {
        let tls = self.config(&target.ca_pem)?;
        let address = (target.host.as_str(), target.port);
        let tcp = tokio::time::timeout(DIAL, TcpStream::connect(address)).await;
        let tcp = tcp.map_err(|_| Why::DialTimeout)?;
        let tcp = tcp.map_err(|source| Why::Dial { host: target.host.clone(), port: target.port, source })?;
        let _ = tcp.set_nodelay(true);
        let name = ServerName::try_from(target.server_name.clone())?;
        let tls = tokio::time::timeout(HANDSHAKE, TlsConnector::from(tls).connect(name, tcp)).await;
        let tls = tls.map_err(|_| Why::HandshakeTimeout)?;
        let tls = tls.map_err(Why::Handshake)?;
        let (sender, connection) = http1::handshake(TokioIo::new(tls)).await?;
        let mut drivers = self.drivers.lock();
        while drivers.try_join_next().is_some() {}
        drivers.spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }

    fn config(&self, ca_pem: &str) -> Result<Arc<rustls::ClientConfig>, Why> {
        let mut configs = self.configs.lock();
        if let Some(config) = configs.get(ca_pem) {
            return Ok(config.clone());
        }
        // Rotated bundles must not pile up.
        if configs.len() >= 64 {
            configs.clear();
        }
        let config =
            mock_pki::client_config_at(self.pace.get().copied(), ca_pem, &["http/1.1"]).map_err(Why::Bundle)?;
        configs.insert(ca_pem.to_owned(), config.clone());
        Ok(config)
    }
}

fn request(target: &Target, path_and_query: &str, body: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
    Request::builder()
        .method(Method::POST)
        .uri(path_and_query)
        .header(header::HOST, format!("{}:{}", target.server_name, target.port))
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::ACCEPT_ENCODING, "gzip")
        .body(Full::new(body))
}

/// The text of an error and of its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
