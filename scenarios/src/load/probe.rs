//! One request before the load: checks that a webhook answers, and names the remedy if no webhook does.
//!
//! Opens one plain connection itself, because a pooled client only reports that the call failed. Measures nothing.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use go_rules::admission::{self, Refusal};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use loadgen::admission::Client;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, AlertDescription, CertificateError, ClientConfig, RootCertStore};

use super::Webhook;
use super::measure::chain;

/// Timeout of each step that opens the connection, such as the TLS handshake.
const STEP_LIMIT: Duration = Duration::from_secs(5);
/// The longest timeout that a webhook configuration may have.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Maximum size of an answer. A webhook answers with a patch of at most 1.5 MiB; the probe only needs to recognize a
/// review.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Maximum number of characters of an answer that an error quotes.
const QUOTED_CHARS: usize = 200;

/// The reason why load on this target would be useless, with the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Problem(String);

fn problem<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem(text.into()))
}

/// Scheme, host, port and path of a URL.
struct ParsedUrl {
    host: String,
    port: u16,
    authority: String,
    path: String,
}

impl ParsedUrl {
    fn at(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Sends one review and checks that the answer comes from a webhook. `body` is a review with this uid.
pub(crate) async fn probe(to: &Webhook, client: Client, body: Bytes) -> Result<(), Problem> {
    let place = place(&to.url).await?;
    let config = client_config(to, client)?;
    let tcp = connect(&place).await?;
    let stream = handshake(&place, to, config, tcp).await?;
    if client == Client::Http2 {
        let agreed = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let text =
            "the server does not offer HTTP/2 (ALPN h2): leave `--client http2` out, as kube-apiserver speaks HTTP/1.1";
        // The load itself shows how an HTTP/2 server answers the review.
        return if agreed { Ok(()) } else { problem(text) };
    }
    let answer = ask(&place, stream, body.clone()).await?;
    judge(&place, &answer, &body)
}

async fn place(url: &str) -> Result<ParsedUrl, Problem> {
    let parsed = url.parse();
    // Messages show only the masked URL.
    let url = units::masked(url);
    let uri: Uri = match parsed {
        Ok(uri) => uri,
        Err(error) => {
            return problem(format!(
                "`{url}` is no address ({error}): write for example https://127.0.0.1:8443/mutate"
            ));
        }
    };
    let Some(host) = uri.host() else {
        return problem(format!("`{url}` has no host: write for example https://127.0.0.1:8443/mutate"));
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let rest = uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
    let authority = uri.authority().map_or_else(String::new, ToString::to_string);
    let port = |default| {
        let port = units::port(&authority, default);
        port.map_err(|error| {
            Problem(format!("`{url}` is no address ({error}): write for example https://127.0.0.1:8443/mutate"))
        })
    };
    match uri.scheme_str() {
        Some("https") => {
            let port = port(443)?;
            Ok(ParsedUrl { host, port, authority, path: rest.to_owned() })
        }
        Some("http") => {
            let port = port(80)?;
            let advice = if speaks_tls(&host, port).await {
                format!("this port speaks TLS: write https://{authority}{rest}")
            } else {
                "Kubernetes calls webhooks over https only: give the server a certificate, and its CA to --ca"
                    .to_owned()
            };
            problem(format!("`{url}` begins with http://; {advice}"))
        }
        _ => problem(format!("`{url}` does not begin with https://: write for example https://{authority}{rest}")),
    }
}

async fn connect(place: &ParsedUrl) -> Result<TcpStream, Problem> {
    let at = place.at();
    match tokio::time::timeout(STEP_LIMIT, TcpStream::connect((place.host.as_str(), place.port))).await {
        Ok(Ok(tcp)) => Ok(tcp),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => problem(format!(
            "nothing listens at {at} (connection refused): start the webhook, or correct host and port; in a cluster, forward \
             the port first (kubectl port-forward service/NAME {}:443)",
            place.port
        )),
        Ok(Err(error)) if error.raw_os_error().is_none() => {
            problem(format!("{} cannot be found ({error}): correct the host name, or write its address", place.host))
        }
        Ok(Err(error)) => problem(format!("no connection to {at} ({error}): correct host and port")),
        Err(_) => problem(format!(
            "{at} did not accept a connection within {} s: correct the address, or look for a firewall in between",
            STEP_LIMIT.as_secs()
        )),
    }
}

fn client_config(to: &Webhook, client: Client) -> Result<Arc<ClientConfig>, Problem> {
    let unusable =
        |error: String| Problem(format!("--ca: the file has a certificate that cannot be used ({error}): give PEM"));
    let trusted = CertificateDer::pem_slice_iter(to.ca_pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let trusted = trusted.map_err(|error| unusable(format!("{error:?}")))?;
    if trusted.is_empty() {
        return problem("--ca: there is no `BEGIN CERTIFICATE` block in the file: give the CA certificate as PEM");
    }
    let provider = go_rules::tls::provider();
    let verifier = go_rules::tls::verifier(&trusted, &provider).map_err(|error| unusable(error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Problem(error.to_string()))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match &to.client_certificate {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(identity.chain_pem.as_bytes()).collect();
            let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes());
            let (Ok(chain), Ok(key)) = (chain, key) else {
                return problem("--cert and --key: one of them is no PEM of a certificate or private key");
            };
            match builder.with_client_auth_cert(chain, key) {
                Ok(config) => config,
                Err(error) => return problem(format!("--cert and --key do not go together: {error}")),
            }
        }
    };
    config.alpn_protocols = vec![if client == Client::Http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
    Ok(Arc::new(config))
}

async fn handshake(
    place: &ParsedUrl,
    to: &Webhook,
    config: Arc<ClientConfig>,
    tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, Problem> {
    let name = if to.server_name.is_empty() { &place.host } else { &to.server_name };
    let Ok(server_name) = ServerName::try_from(name.clone()) else {
        return problem(format!("--server-name: `{name}` is no DNS name and no IP address"));
    };
    match tokio::time::timeout(STEP_LIMIT, TlsConnector::from(config).connect(server_name, tcp)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => problem(explain(&error, place, name)),
        Err(_) => problem(format!(
            "{} accepts connections but does not answer a TLS handshake within {} s: is it a TLS port, and is the server stuck?",
            place.at(),
            STEP_LIMIT.as_secs()
        )),
    }
}

/// An explanation of a failed handshake, with the remedy.
fn explain(error: &io::Error, place: &ParsedUrl, name: &str) -> String {
    let at = place.at();
    let Some(error) = tls_error(error) else {
        return format!("{at} closed the connection during the TLS handshake ({error}): is it a TLS port?");
    };
    match error {
        rustls::Error::InvalidCertificate(problem) => certificate(problem, &at, name),
        rustls::Error::InvalidMessage(_) => format!(
            "{at} speaks no TLS, perhaps plain http: Kubernetes calls webhooks over https only; give the server a \
             certificate, or the port that speaks TLS"
        ),
        rustls::Error::AlertReceived(alert) => refused(*alert, &at),
        rustls::Error::PeerIncompatible(why) => {
            format!("{at} speaks no TLS 1.2 or 1.3 that this program knows ({why:?}): enable one in the server")
        }
        other => format!("the TLS handshake with {at} failed: {other}"),
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
}

fn refused(alert: AlertDescription, at: &str) -> String {
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::BadCertificate | AlertDescription::UnknownCA => {
            format!(
                "{at} demands a client certificate ({alert:?}): give one that it trusts with --cert and --key, as \
                 kube-apiserver gets one from its --admission-control-config-file"
            )
        }
        AlertDescription::UnrecognisedName => {
            format!(
                "{at} knows no server of this name ({alert:?}): give the name of its certificate with --server-name"
            )
        }
        AlertDescription::NoApplicationProtocol => {
            format!("{at} does not speak the HTTP version of this client ({alert:?}): choose another --client")
        }
        _ => format!("{at} refused the TLS handshake ({alert:?}): its log says why"),
    }
}

fn certificate(error: &CertificateError, at: &str, name: &str) -> String {
    let fetch = format!("openssl s_client -showcerts -connect {at} </dev/null");
    match error {
        CertificateError::UnknownIssuer => format!(
            "the certificate of {at} is signed by none of the CAs in --ca: give the file with the CA that signed it (in a \
             cluster, the base64 in `webhooks[].clientConfig.caBundle` of the webhook configuration); a self-signed \
             certificate is its own CA. `{fetch}` shows what the server presents"
        ),
        CertificateError::BadSignature => format!(
            "the certificate of {at} is not signed by the CA in --ca, although that has the right name: the CA was replaced, or the \
             server presents an older certificate; give the CA that signed it. `{fetch}` shows what the server presents"
        ),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let names = if names.is_empty() { "no name at all".to_owned() } else { names.join(", ") };
            format!(
                "the certificate of {at} is not for `{name}`; it is for {names}: choose one with --server-name, such as the \
                 <service>.<namespace>.svc that kube-apiserver would ask for"
            )
        }
        CertificateError::NotValidForName => format!(
            "the certificate of {at} is not for `{name}`: give one of its names with --server-name; `{fetch}` shows them"
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate of {at} has expired ({error}): renew it, kube-apiserver would refuse it too")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate of {at} is not valid yet ({error}): compare the clocks of both machines")
        }
        // This is webpki's error for a server certificate marked as CA. If --ca names that certificate, it is trusted.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => format!(
            "the certificate of {at} is marked as a CA (basicConstraints CA:TRUE) and is not the one in --ca: give that one \
             with --ca, or issue a server certificate (with openssl: -addext basicConstraints=critical,CA:FALSE)"
        ),
        other => format!("the certificate of {at} is not acceptable: {other}; `{fetch}` shows it"),
    }
}

/// The host name in a text such as `DnsName("webhook.shop.svc")`, as the TLS library prints names.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inner.trim_matches('"')
}

struct Answer {
    status: u16,
    location: String,
    body: Bytes,
}

async fn ask(place: &ParsedUrl, stream: TlsStream<TcpStream>, body: Bytes) -> Result<Answer, Problem> {
    let at = place.at();
    let limit = ANSWER_LIMIT;
    let broken = |error: &(dyn std::error::Error + 'static)| {
        let mut source = Some(error);
        while let Some(cause) = source {
            if let Some(rustls::Error::AlertReceived(alert)) = cause.downcast_ref::<io::Error>().and_then(tls_error) {
                return Problem(refused(*alert, &at));
            }
            source = cause.source();
        }
        Problem(format!("{at} broke the connection off before it answered ({}): its log may say why", chain(error)))
    };
    let exchange = async {
        let (mut sender, connection) = hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream))
            .await
            .map_err(|e| broken(&e))?;
        let request = Request::post(format!("{}?timeout={}s", place.path, limit.as_secs()))
            .header(HOST, &place.authority)
            .header(ACCEPT, "application/json, */*")
            .header(CONTENT_TYPE, "application/json")
            .header("User-Agent", "kube-apiserver-admission")
            .body(Full::new(body))
            .map_err(|error| Problem(format!("`{}` is no path: {error}", place.path)))?;
        let respond = async {
            let response = sender.send_request(request).await.map_err(|e| broken(&e))?;
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let (status, location) = (response.status().as_u16(), quote(location.as_bytes()));
            let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
            let body = body.map_err(|error| Problem(unread(place, &*error)))?;
            Ok(Answer { status, location, body: body.to_bytes() })
        };
        tokio::pin!(respond);
        tokio::select! {
            answer = &mut respond => answer,
            // The request's error only says that the connection broke; the connection's error has the reason.
            end = connection => respond.await.map_err(|plain| end.err().map_or(plain, |error| broken(&error))),
        }
    };
    match tokio::time::timeout(limit, exchange).await {
        Ok(answer) => answer,
        Err(_) => problem(format!(
            "{at} took a request but did not answer within {} s: look at its log; --no-probe sends the load all the same",
            limit.as_secs()
        )),
    }
}

/// The reason why the body of an answer could not be read, and the remedy.
fn unread(place: &ParsedUrl, error: &(dyn std::error::Error + 'static)) -> String {
    let (path, at) = (&place.path, place.at());
    if error.is::<LengthLimitError>() {
        let most = BODY_BYTES_MAX >> 20;
        return format!(
            "`{path}` of {at} answers with more than {most} MiB, as no webhook does: give the path of the webhook"
        );
    }
    format!("{at} broke off in the middle of its answer ({}): its log may say why", chain(error))
}

fn judge(place: &ParsedUrl, answer: &Answer, asked: &[u8]) -> Result<(), Problem> {
    let (path, at) = (&place.path, place.at());
    let quoted = quote(&answer.body);
    match answer.status {
        200..=206 => {}
        404 | 405 => {
            return problem(format!(
                "there is no webhook at the path `{path}` of {at} (HTTP {}: {quoted}): give the path at which it takes \
                 AdmissionReviews, such as https://{}/mutate (`clientConfig.service.path` of the webhook configuration)",
                answer.status, place.authority
            ));
        }
        300..=399 => {
            return problem(format!(
                "{at} redirects `{path}` to `{}` (HTTP {}): kube-apiserver does not follow redirects, give the final address",
                answer.location, answer.status
            ));
        }
        401 | 403 => {
            return problem(format!(
                "{at} refuses who asks at `{path}` (HTTP {}: {quoted}): it wants a client certificate or a token that \
                 kube-apiserver would have; allow this client, or test without that check",
                answer.status
            ));
        }
        status => {
            return problem(format!(
                "{at} answers the first review with HTTP {status} ({quoted}): kube-apiserver takes only 200 to 206; look at its log, \
                 or send the load all the same with --no-probe"
            ));
        }
    }
    let asked: serde_json::Value = serde_json::from_slice(asked).unwrap_or_default();
    let uid = asked["request"]["uid"].as_str().unwrap_or_default().as_bytes();
    let asked = admission::ReviewRequest { uid, mutating: true, version: admission::Version::V1 };
    let said =
        admission::verdict(admission::Answer { status: answer.status, content_type: None, body: &answer.body }, asked);
    if let Err(Refusal::Undecodable { .. } | Refusal::Empty { .. } | Refusal::Absent | Refusal::Type { .. }) = said {
        return problem(format!(
            "`{path}` of {at} answers, but not with an AdmissionReview ({quoted}): give the path of the webhook"
        ));
    }
    if let Err(Refusal::Uid { .. }) = said {
        return problem(format!(
            "`{path}` of {at} answers with the wrong `response.uid` ({quoted}): kube-apiserver believes no such answer; the \
             webhook must repeat `request.uid`"
        ));
    }
    Ok(())
}

fn quote(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * QUOTED_CHARS)]);
    // Text of a server must not control the terminal.
    let text = text.replace(|c: char| c.is_control() && !c.is_whitespace(), "\u{fffd}");
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { "no body".to_owned() } else { line.chars().take(QUOTED_CHARS).collect() }
}

/// Whether a server answers a TLS hello with TLS, even if it refuses certificates later.
async fn speaks_tls(host: &str, port: u16) -> bool {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let Ok(builder) = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions() else {
        return false;
    };
    let config = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let Ok(name) = ServerName::try_from(host.to_owned()) else { return false };
    let attempt = async {
        let tcp = TcpStream::connect((host, port)).await.ok()?;
        match TlsConnector::from(Arc::new(config)).connect(name, tcp).await {
            Ok(_) => Some(()),
            Err(error) => {
                let known = tls_error(&error)?;
                matches!(known, rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_)).then_some(())
            }
        }
    };
    tokio::time::timeout(STEP_LIMIT, attempt).await.ok().flatten().is_some()
}
