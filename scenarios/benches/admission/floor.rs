//! The floor: a bare hyper server over the same TLS that reads the body and answers a constant.
//!
//! No webhook on these libraries can do less. The one thing that is not constant is the uid, which must be that of the
//! review for the answer to be one; it stands near the beginning of the body.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// As many as the service has on its processor.
const WORKER_THREADS: usize = 1;
const UID_KEY: &[u8] = br#""uid":""#;
const UID_BYTES: usize = 36;
const BEFORE_UID: &[u8] = br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":""#;
const AFTER_UID: &[u8] = br#"","allowed":true}}"#;

/// Where it listens and with what.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    listen: SocketAddr,
    certificate: PathBuf,
    key: PathBuf,
}

/// Is the server until it is killed.
pub(crate) fn serve(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKER_THREADS).enable_all().build()?;
    // On a worker, as the service accepts: from the thread that waits here each connection would begin on another.
    runtime.block_on(async { tokio::spawn(accept(arguments.listen, config(arguments)?)).await? })
}

fn config(arguments: &Arguments) -> Result<Arc<rustls::ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(&arguments.certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&arguments.key)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

async fn accept(listen: SocketAddr, config: Arc<rustls::ServerConfig>) -> Result<()> {
    let acceptor = TlsAcceptor::from(config);
    let listener = tokio::net::TcpListener::bind(listen).await.context("failed to listen")?;
    loop {
        let (tcp, _) = listener.accept().await?;
        tcp.set_nodelay(true)?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            // Clients that go away are the end of every measurement.
            let server = hyper::server::conn::http1::Builder::new();
            let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let at = memchr::memmem::find(&body, UID_KEY).map_or(0, |at| at + UID_KEY.len());
    let uid = body.get(at..at + UID_BYTES).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from([BEFORE_UID, uid, AFTER_UID].concat())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
