//! A plain hyper server for comparison, over the same TLS, that only reads the body and answers a constant.
//!
//! No server with the same libraries can do less work. Only the review's uid differs between answers, because a valid
//! answer must repeat it; the uid is near the beginning of the body. At the path [`FREEZE_PATH`] the server freezes
//! periodically, to test how load generators report a freeze.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

const UID_KEY: &[u8] = br#""uid":""#;
const UID_BYTES: usize = 36;
const BEFORE_UID: &[u8] = br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":""#;
const AFTER_UID: &[u8] = br#"","allowed":true}}"#;

/// The constant answer to a request for a Deployment's replica count.
const COUNT: &[u8] = br#"{"namespace":"bench","name":"deployment-000000","replicaCount":3}"#;

/// Interval between the beginnings of two freezes, in milliseconds. A freeze begins whenever the milliseconds since
/// 1970 are a multiple of this constant.
pub(crate) const PERIOD_MS: u64 = 10_000;
/// Duration of a freeze in milliseconds.
pub(crate) const FREEZE_MS: u64 = 2_000;
pub(crate) const FREEZE_PATH: &str = "/freeze";
/// Maximum number of streams of an HTTP/2 connection, because some hundred requests wait during a freeze.
const STREAMS_MAX: u32 = 2_000;

/// Listening address, files and threads of the server.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    listen: SocketAddr,
    certificate: PathBuf,
    key: PathBuf,
    /// Number of threads of the server, equal to that of the compared service.
    threads: usize,
    /// The file with the CA of accepted client certificates; with it, the server only allows TLS 1.3. If the CA is set,
    /// the server answers with a replica count, otherwise with a review.
    client_ca: Option<PathBuf>,
}

/// The command that starts this program as the plain server of [`serve`].
pub(crate) fn command(listen: SocketAddr, certificate: &Path, key: &Path, threads: usize) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("floor").arg(listen.to_string()).arg(certificate).arg(key).arg(threads.to_string());
    command.stdin(Stdio::null());
    Ok(command)
}

/// Runs the plain server until it is killed.
pub(crate) fn serve(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(arguments.threads).enable_all().build()?;
    // Connections are accepted on a worker, as in the service: from the waiting thread each connection would begin on
    // another worker.
    runtime.block_on(async {
        tokio::spawn(accept(arguments.listen, config(arguments)?, arguments.client_ca.is_some())).await?
    })
}

fn config(arguments: &Arguments) -> Result<Arc<rustls::ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(&arguments.certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&arguments.key)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider));
    let mut config = if let Some(client_ca) = &arguments.client_ca {
        let mut roots = rustls::RootCertStore::empty();
        for authority in CertificateDer::pem_file_iter(client_ca)? {
            roots.add(authority?)?;
        }
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13])?;
        builder.with_client_cert_verifier(verifier.build()?).with_single_cert(chain, key)?
    } else {
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?;
        let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
        config.alpn_protocols.push(b"h2".to_vec());
        config
    };
    config.alpn_protocols.push(b"http/1.1".to_vec());
    Ok(Arc::new(config))
}

async fn accept(listen: SocketAddr, config: Arc<rustls::ServerConfig>, counts: bool) -> Result<()> {
    let acceptor = TlsAcceptor::from(config);
    let listener = tokio::net::TcpListener::bind(listen).await.context("failed to listen")?;
    loop {
        let (tcp, _) = listener.accept().await?;
        tcp.set_nodelay(true)?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            // Every measurement ends with clients that go away.
            let service = service_fn(|request| answer(request, counts));
            let _ = if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                server.max_concurrent_streams(STREAMS_MAX);
                server.serve_connection(TokioIo::new(stream), service).await
            } else {
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
            };
        });
    }
}

async fn answer(request: Request<Incoming>, counts: bool) -> Result<Response<Full<Bytes>>, Infallible> {
    if counts {
        return Ok(json(Bytes::from_static(COUNT)));
    }
    let freezes = request.uri().path() == FREEZE_PATH;
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    if freezes && let Ok(now_ms) = clock_ms() {
        let left_ms = FREEZE_MS as f64 - now_ms % PERIOD_MS as f64;
        tokio::time::sleep(Duration::from_secs_f64(left_ms.max(0.0) / 1e3)).await;
    }
    let at = memchr::memmem::find(&body, UID_KEY).map_or(0, |at| at + UID_KEY.len());
    let uid = body.get(at..at + UID_BYTES).unwrap_or_default();
    Ok(json(Bytes::from([BEFORE_UID, uid, AFTER_UID].concat())))
}

/// Milliseconds since 1970-01-01.
pub(crate) fn clock_ms() -> Result<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?.as_secs_f64() * 1e3)
}

fn json(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
