//! GET requests over HTTPS with redirects.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, LOCATION, USER_AGENT};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::Error;

const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// The time limit for the head of an HTTP answer, and for each further chunk of its body.
const SILENCE_LIMIT: Duration = Duration::from_mins(1);
/// The time limit of downloading a whole file, long enough for 200 MB at 1 Mbit/s.
const WHOLE_LIMIT: Duration = Duration::from_mins(30);
/// Maximum number of redirects of one request; dl.k8s.io and github.com each redirect once.
const REDIRECTS_MAX: usize = 5;

/// The function that receives the chunks of an answer's body.
pub(super) type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), Error> + Send + 'a;

pub(super) struct Client {
    ca_pem: Option<String>,
}

/// A connection and an answer whose body has not been read.
struct Answer {
    response: Response<Incoming>,
    // Drives the connection; owned, so that it ends with the answer.
    driver: JoinSet<()>,
}

impl Client {
    pub(super) fn new(ca_pem: Option<&str>) -> Self {
        Self { ca_pem: ca_pem.map(str::to_owned) }
    }

    /// Fetches a small file as text.
    pub(super) async fn text(&self, url: &str, most: u64) -> Result<String, Error> {
        let mut bytes = Vec::new();
        let mut take = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        self.get(url, most, &mut take).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Fetches a file of at most `most` bytes and passes its chunks to `sink`.
    pub(super) async fn get(&self, url: &str, most: u64, sink: &mut Sink<'_>) -> Result<(), Error> {
        let late = || broken(url, &format!("it did not end within {} minutes", WHOLE_LIMIT.as_secs() / 60));
        tokio::time::timeout(WHOLE_LIMIT, self.get_whole(url, most, sink)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn get_whole(&self, url: &str, most: u64, sink: &mut Sink<'_>) -> Result<(), Error> {
        let Answer { response, driver } = self.follow(url).await?;
        let mut body = response.into_body();
        let mut left = most;
        loop {
            let frame = tokio::time::timeout(SILENCE_LIMIT, body.frame()).await;
            let Some(frame) = frame.map_err(|_| broken(url, "the server stopped sending"))? else { break };
            let frame = frame.map_err(|error| broken(url, &format!("it broke off: {error}")))?;
            // Trailers carry nothing here.
            let Ok(data) = frame.into_data() else { continue };
            left = left.checked_sub(data.len() as u64).ok_or_else(|| Error::TooLarge { url: url.to_owned(), most })?;
            sink(&data)?;
        }
        drop(driver);
        Ok(())
    }

    /// Requests `url`, follows all redirects, and returns the head of the successful answer.
    async fn follow(&self, url: &str) -> Result<Answer, Error> {
        let mut at = address(url, url)?;
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.ask(url, &at).await?;
            let status = answer.response.status();
            if status == StatusCode::OK {
                return Ok(answer);
            }
            if status == StatusCode::NOT_FOUND {
                return Err(Error::NotFound { url: url.to_owned() });
            }
            let location = answer.response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let location = location.filter(|_| status.is_redirection());
            let location = location.ok_or_else(|| broken(url, &format!("HTTP {}", status.as_u16())))?;
            let next = if location.starts_with('/') && !location.starts_with("//") {
                // Within the same server.
                format!("{}://{}{location}", at.scheme_str().unwrap_or("https"), host_and_port(&at))
            } else {
                location.to_owned()
            };
            let next = address(&next, url)?;
            if at.scheme_str() == Some("https") && next.scheme_str() != Some("https") {
                return Err(refused(&next.to_string(), "the server redirects from HTTPS to plain HTTP"));
            }
            at = next;
        }
        Err(broken(url, &format!("the server redirects more than {REDIRECTS_MAX} times")))
    }

    async fn ask(&self, url: &str, at: &Uri) -> Result<Answer, Error> {
        let host = at.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let https = at.scheme_str() == Some("https");
        let port = at.port_u16().unwrap_or(if https { 443 } else { 80 });
        let connecting = async {
            let unreachable = |error: std::io::Error| broken(url, &format!("no connection to {host}: {error}"));
            let tcp = TcpStream::connect((host.as_str(), port)).await.map_err(unreachable)?;
            if !https {
                return exchange(tcp, url, at).await;
            }
            let name = ServerName::try_from(host.clone()).map_err(|_| refused(url, "its host is no server name"))?;
            let tls = self.tls()?.connect(name, tcp).await.map_err(unreachable)?;
            exchange(tls, url, at).await
        };
        let limit = CONNECT_LIMIT + SILENCE_LIMIT;
        let late = || broken(url, &format!("{host} did not answer within {} s", limit.as_secs()));
        tokio::time::timeout(limit, connecting).await.unwrap_or_else(|_| Err(late()))
    }

    fn tls(&self) -> Result<TlsConnector, Error> {
        let none = |problem: String| Error::Roots { problem };
        let mut roots = RootCertStore::empty();
        if let Some(pem) = &self.ca_pem {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|error| none(error.to_string()))?;
                roots.add(certificate).map_err(|error| none(error.to_string()))?;
            }
        } else {
            let loaded = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(loaded.certs);
            if let (true, Some(error)) = (roots.is_empty(), loaded.errors.first()) {
                return Err(none(error.to_string()));
            }
        }
        if roots.is_empty() {
            return Err(none("there are none; install your system's package ca-certificates".to_owned()));
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| none(error.to_string()))?;
        Ok(TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
    }
}

async fn exchange<S>(stream: S, url: &str, at: &Uri) -> Result<Answer, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let wire = |error: hyper::Error| broken(url, &error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(wire)?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // The reader of the answer gets its error.
        let _ = connection.await;
    });
    let path = at.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let request = Request::get(path).header(HOST, host_and_port(at)).header(USER_AGENT, "longhaul-fetch");
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| broken(url, &error.to_string()))?;
    let response = sender.send_request(request).await.map_err(wire)?;
    Ok(Answer { response, driver })
}

/// Parses a URL: HTTPS to any server, plain HTTP to this machine only. `url` is the URL of the first request, for
/// messages.
fn address(text: &str, url: &str) -> Result<Uri, Error> {
    let uri: Uri = text.parse().map_err(|error: http::uri::InvalidUri| refused(text, &error.to_string()))?;
    let host = uri.host().ok_or_else(|| refused(text, "it has no host"))?.trim_matches(['[', ']']);
    let local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if local => Ok(uri),
        _ if text == url => Err(refused(text, "it must begin with https://; http:// is for servers on this machine")),
        _ => Err(refused(text, &format!("{url} redirects to it, and it does not begin with https://"))),
    }
}

/// Host and port of a URL, without user information, which the header `Host` must not contain.
fn host_and_port(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    uri.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn refused(url: &str, problem: &str) -> Error {
    Error::Url { url: url.to_owned(), problem: problem.to_owned() }
}

fn broken(url: &str, problem: &str) -> Error {
    Error::Broken { url: url.to_owned(), problem: problem.to_owned() }
}
