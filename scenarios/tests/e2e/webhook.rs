//! A small TLS webhook inside the test process, for commands that need no control plane. This webhook shares no code
//! with the tested client.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mock_pki::{Authority, Pair, server_config};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How the webhook answers every review at `/mutate`.
#[derive(Debug, Clone, Copy)]
pub enum Habit {
    /// Allows every review.
    Allow,
    /// Allows every review, but answers only after this time.
    Slow(Duration),
    /// Answers every n-th review with HTTP 500, beginning with the second review.
    Errors(u64),
    /// Answers with HTTP 200 and an invalid body.
    Nonsense,
    /// Answers with the uid of another review.
    WrongUid,
    /// Announces a body and closes the connection before the body is complete.
    BreaksOff,
    /// Answers with a body that never ends.
    Endless,
    /// Fails with a text that contains escape sequences to clear a terminal's screen.
    Colours,
    /// Handles this many reviews at the same time, each in this time. Further reviews wait, as in a webhook with too
    /// few threads.
    AtOnce(usize, Duration),
}

/// The certificate that the webhook presents.
#[derive(Debug, Clone, Copy)]
pub enum Certificate {
    For(&'static str),
    Expired,
    AsksForClients,
    /// A self-signed certificate that is its own CA. The client under test trusts only this certificate.
    Own,
}

/// A running webhook, and a file with the CA of its certificate. Dropping this value ends the webhook.
pub struct Webhook {
    pub address: SocketAddr,
    pub reviews: Arc<AtomicU64>,
    folder: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Webhook {
    /// Starts a webhook with a certificate for 127.0.0.1.
    pub fn start(habit: Habit) -> Self {
        Self::with(habit, Certificate::For("127.0.0.1"))
    }

    pub fn with(habit: Habit, certificate: Certificate) -> Self {
        let authority = Authority::generate("test CA").unwrap();
        let pair = match certificate {
            Certificate::For(name) => authority.server(&[name]),
            Certificate::Expired => authority.expired_server(&["127.0.0.1"]),
            Certificate::AsksForClients => authority.server(&["127.0.0.1"]),
            Certificate::Own => Ok(own_ca("127.0.0.1")),
        };
        let pair = pair.unwrap();
        let ca_pem = if matches!(certificate, Certificate::Own) { &pair.certificate_pem } else { authority.ca_pem() };
        let mut config = if matches!(certificate, Certificate::AsksForClients) {
            asking(&pair, authority.ca_pem())
        } else {
            rustls::ServerConfig::clone(&server_config(&pair, None).unwrap())
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), ca_pem).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let reviews = Arc::new(AtomicU64::new(0));
        runtime.spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), habit, Arc::clone(&reviews)));
        Self { address, reviews, folder, _runtime: runtime }
    }

    pub fn url(&self) -> String {
        format!("https://{}/mutate", self.address)
    }

    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The path of a file in a folder that is removed with the webhook.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn reviews(&self) -> u64 {
        self.reviews.load(Ordering::SeqCst)
    }
}

/// A certificate like that of `openssl req -x509`: self-signed and its own CA.
fn own_ca(name: &str) -> Pair {
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    Pair { certificate_pem: params.self_signed(&key).unwrap().pem(), key_pem: key.serialize_pem() }
}

/// A TLS configuration that requires a client certificate of this CA.
fn asking(pair: &Pair, ca_pem: &str) -> rustls::ServerConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_client_cert_verifier(verifier.build().unwrap());
    let chain = CertificateDer::from_pem_slice(pair.certificate_pem.as_bytes()).unwrap();
    builder.with_single_cert(vec![chain], PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap()).unwrap()
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, habit: Habit, reviews: Arc<AtomicU64>) {
    let places = match habit {
        Habit::AtOnce(places, _) => places,
        _ => tokio::sync::Semaphore::MAX_PERMITS,
    };
    let places = Arc::new(tokio::sync::Semaphore::new(places));
    while let Ok((tcp, _)) = listener.accept().await {
        let (acceptor, reviews, places) = (acceptor.clone(), Arc::clone(&reviews), Arc::clone(&places));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            if matches!(habit, Habit::BreaksOff) {
                break_off(stream).await;
                return;
            }
            let service = service_fn(move |request| {
                let (reviews, places) = (Arc::clone(&reviews), Arc::clone(&places));
                async move {
                    let _place = places.acquire().await.unwrap();
                    Ok::<_, Infallible>(answer(request, habit, &reviews).await)
                }
            });
            // Clients that go away are part of the tests.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Reads a request and closes the connection in the middle of the answer.
async fn break_off(mut stream: TlsStream<TcpStream>) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"}") && stream.read_buf(&mut seen).await.is_ok_and(|read| read > 0) {}
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{").await;
    let _ = stream.shutdown().await;
}

async fn answer(request: Request<Incoming>, habit: Habit, reviews: &AtomicU64) -> Response<Full<Bytes>> {
    let respond = |status: u16, content_type: &str, text: String| {
        Response::builder().status(status).header("Content-Type", content_type).body(Full::new(text.into())).unwrap()
    };
    if request.uri().path() != "/mutate" {
        return respond(404, "text/plain", "404 page not found".to_owned());
    }
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let count = reviews.fetch_add(1, Ordering::SeqCst) + 1;
    let mut uid = review["request"]["uid"].clone();
    match habit {
        Habit::Slow(time) | Habit::AtOnce(_, time) => tokio::time::sleep(time).await,
        Habit::Errors(every) if count.is_multiple_of(every) => return respond(500, "text/plain", "boom".to_owned()),
        Habit::Allow | Habit::Errors(_) | Habit::BreaksOff => {}
        Habit::Nonsense => return respond(200, "application/json", json!({"hello": "world"}).to_string()),
        Habit::WrongUid => uid = "another".into(),
        Habit::Endless => return respond(200, "application/json", " ".repeat(5 << 20)),
        Habit::Colours => return respond(500, "text/plain", "\u{1b}[31mboom\u{1b}[2J\u{7}".to_owned()),
    }
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": true}});
    respond(200, "application/json", answer.to_string())
}
