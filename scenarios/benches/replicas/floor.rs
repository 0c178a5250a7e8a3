//! The floor: a bare hyper server over TLS 1.3 with client certificates that answers a constant.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// As many as the service has.
const WORKER_THREADS: usize = 2;
const ANSWER: &str = r#"{"namespace":"bench","name":"deployment-000000","replicaCount":3}"#;

/// Where it listens, and the folder with its certificates.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    listen: SocketAddr,
    folder: PathBuf,
}

/// Is the server until it is killed.
pub(crate) fn serve(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKER_THREADS).enable_all().build()?;
    runtime.block_on(async { tokio::spawn(accept(arguments.listen, config(arguments)?)).await? })
}

fn config(arguments: &Arguments) -> Result<Arc<rustls::ServerConfig>> {
    let file = |name: &str| arguments.folder.join(name);
    let chain = CertificateDer::pem_file_iter(file("server.crt"))?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(file("server.key"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    for authority in CertificateDer::pem_file_iter(file("ca.crt"))? {
        roots.add(authority?)?;
    }
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier.build()?)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
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

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
