//! Connects the example watcher to the API server and to the witness.
//!
//! This module handles TLS, time limits, and repeated attempts to send a report. The watcher uses plain hyper, with one
//! connection per request to the API server. An abandoned watch closes its connection, so the next watch does not use
//! the same dead connection.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

/// Time limit from connecting to the head of the answer. The body of a list has the same limit.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
const LIST_BYTES_MAX: usize = 64 << 20;
/// The longest `Retry-After` that the watcher obeys.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// Maximum number of attempts to send a report. A witness that cannot be reached for longer will not come back.
const REPORT_TRIES: u32 = 10;
const REPORT_PAUSE: Duration = Duration::from_millis(300);

pub struct Api {
    host: String,
    port: u16,
    token: Token,
    tls: TlsConnector,
    retry_after: Duration,
}

/// The bearer token. A token file may be replaced at any time, so the file is read for every request.
enum Token {
    Fixed(String),
    File(PathBuf),
}

/// An answer that is being read. Dropping the value closes the connection.
pub struct Stream {
    pub body: Incoming,
    connection: AbortHandle,
}

/// The address to which observations are reported.
pub struct Witness {
    /// Host and path; `None` if nothing has to be reported.
    at: Option<(String, String)>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Api {
    /// Reads the current context of a kubeconfig: server, certificate authority and token.
    pub fn from_kubeconfig(path: &str) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {path}"))?;
        let config: Value = serde_saphyr::from_str(&text).with_context(|| format!("{path} is not YAML"))?;
        let named = |list: &str, name: &Value| {
            config[list].as_array().into_iter().flatten().find(|entry| entry["name"] == *name).cloned()
        };
        let context = named("contexts", &config["current-context"]).context("no current context")?["context"].clone();
        let cluster = named("clusters", &context["cluster"]).context("no such cluster")?["cluster"].clone();
        let user = named("users", &context["user"]).context("no such user")?["user"].clone();
        let server = cluster["server"].as_str().context("no server")?;
        let authority: hyper::http::uri::Authority =
            server.strip_prefix("https://").context("the server is not https")?.trim_end_matches('/').parse()?;
        // An invalid port must not become the default one, where another program may listen.
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None if authority.as_str().len() == authority.host().len() => 443,
            None => anyhow::bail!("`{authority}` in {path} has no valid port"),
        };
        let ca = cluster["certificate-authority-data"].as_str().context("no certificate-authority-data")?;
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&base64::engine::general_purpose::STANDARD.decode(ca)?) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port,
            token: match user["tokenFile"].as_str() {
                Some(file) => Token::File(Path::new(path).with_file_name(file)),
                None => Token::Fixed(user["token"].as_str().context("no token and no tokenFile")?.to_owned()),
            },
            tls: TlsConnector::from(Arc::new(tls)),
            retry_after: Duration::ZERO,
        })
    }

    /// The wait that `Retry-After` of the last answer states.
    pub const fn retry_after(&self) -> Duration {
        self.retry_after
    }

    /// Sends a GET request. Returns the whole answer as JSON.
    pub async fn get_json(&mut self, path: &str) -> anyhow::Result<Value> {
        let mut stream = self.open(path).await?.context("the list is gone: its page token is too old")?;
        let body = Limited::new(&mut stream.body, LIST_BYTES_MAX).collect();
        let body = timeout(ANSWER_DEADLINE, body).await.context("the list does not end")?;
        let body = body.map_err(anyhow::Error::from_boxed).context("the list broke")?;
        serde_json::from_slice(&body.to_bytes()).context("the list is not JSON")
    }

    /// Sends a request with any method and body. Returns status code and body of the answer.
    pub async fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> anyhow::Result<(u16, Value)> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let (response, connection) = self.exchange(method, path, body).await?;
        let status = response.status().as_u16();
        let mut stream = Stream { body: response.into_body(), connection };
        let body = Limited::new(&mut stream.body, LIST_BYTES_MAX).collect();
        let body = timeout(ANSWER_DEADLINE, body).await.context("the answer does not end")?;
        let body = body.map_err(anyhow::Error::from_boxed).context("the answer broke")?;
        Ok((status, serde_json::from_slice(&body.to_bytes()).unwrap_or_default()))
    }

    async fn exchange(
        &self,
        method: &str,
        path: &str,
        body: String,
    ) -> anyhow::Result<(Response<Incoming>, AbortHandle)> {
        let token = self.token.value()?;
        let opening = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            let stream = self.tls.connect(ServerName::try_from(self.host.clone())?, stream).await?;
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header("host", format!("{}:{}", self.host, self.port))
                .header("user-agent", "example-watcher")
                .header("content-type", "application/json")
                .header("authorization", format!("Bearer {token}"));
            send(stream, request.body(Full::new(Bytes::from(body)))?).await
        };
        timeout(ANSWER_DEADLINE, opening).await.context("no answer in time")?
    }

    /// Sends a GET request whose answer is read in chunks, such as a watch. Returns `None` if the status of the answer
    /// is 410.
    pub async fn open(&mut self, path: &str) -> anyhow::Result<Option<Stream>> {
        self.retry_after = Duration::ZERO;
        let (response, connection) = self.exchange("GET", path, String::new()).await?;
        let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        self.retry_after = Duration::from_secs(seconds.unwrap_or(0)).min(RETRY_AFTER_MAX);
        let status = response.status();
        let stream = Stream { body: response.into_body(), connection };
        match status {
            StatusCode::OK => Ok(Some(stream)),
            StatusCode::GONE => Ok(None),
            other => bail!("{path} answered {other}"),
        }
    }
}

impl Token {
    fn value(&self) -> anyhow::Result<String> {
        match self {
            Self::Fixed(token) => Ok(token.clone()),
            Self::File(path) => {
                let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()));
                Ok(text?.trim().to_owned())
            }
        }
    }
}

impl Witness {
    /// Parses `http://host:port/path`. With an empty URL nothing is reported.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        if url.is_empty() {
            return Ok(Self { at: None });
        }
        let uri: hyper::Uri = url.parse().with_context(|| format!("{url} is not a URL"))?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"));
        let authority = authority.with_context(|| format!("{url} is not an http URL"))?.to_string();
        let path = uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
        Ok(Self { at: Some((authority, path)) })
    }

    /// Reports all lines in order and empties the list. Repeats the report while the witness cannot be reached.
    pub async fn post(&self, lines: &mut Vec<String>) -> anyhow::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let Some((authority, path)) = &self.at else {
            lines.clear();
            return Ok(());
        };
        let body = Bytes::from(lines.join("\n") + "\n");
        for _ in 0..REPORT_TRIES {
            let sending = async {
                let stream = TcpStream::connect(authority).await?;
                let request = Request::post(path).header("host", authority);
                let request = request.header("content-type", "application/x-ndjson").body(Full::new(body.clone()))?;
                let (response, connection) = send(stream, request).await?;
                connection.abort();
                anyhow::Ok(response.status())
            };
            match timeout(ANSWER_DEADLINE, sending).await {
                Ok(Ok(status)) if status.is_success() => {
                    lines.clear();
                    return Ok(());
                }
                Ok(Ok(status)) if status.is_client_error() => bail!("the witness answered {status}"),
                _ => sleep(REPORT_PAUSE).await,
            }
        }
        bail!("the witness at {authority} cannot be reached")
    }
}

/// The resource's name for the witness, and the path of its objects in all namespaces.
pub fn resource_and_path(wanted: &str) -> anyhow::Result<(String, String)> {
    let (resource, version) = wanted.split_once('/').context("write the resource as `pods/v1` or `plural.group/v1`")?;
    let path = match resource.split_once('.') {
        None => format!("/api/{version}/{resource}"),
        Some((plural, group)) => format!("/apis/{group}/{version}/{plural}"),
    };
    Ok((resource.to_owned(), path))
}

/// A string field of an object.
pub fn text(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> anyhow::Result<(Response<Incoming>, AbortHandle)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // The task ends with its connection, or when the handle is dropped.
    let connection = tokio::spawn(connection).abort_handle();
    Ok((sender.send_request(request).await?, connection))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_none_does_not_become_the_default_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let with = |server: &str| {
            let text = format!(
                "{{clusters: [{{name: c, cluster: {{server: 'https://{server}', certificate-authority-data: ''}}}}], \
                 users: [{{name: u, user: {{token: t}}}}], contexts: [{{name: x, context: {{cluster: c, user: u}}}}], \
                 current-context: x}}"
            );
            std::fs::write(&path, text).expect("the folder is ours");
            Api::from_kubeconfig(&path.display().to_string()).map(|api| api.port)
        };
        assert_eq!(with("a").ok(), Some(443));
        assert_eq!(with("[::1]:8443").ok(), Some(8443));
        let refused = with("a:99999").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("`a:99999`") && refused.contains("has no valid port"), "{refused}");
    }
}
