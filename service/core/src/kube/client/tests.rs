//! Tests of the API server client while its certificate files change, with a real TLS listener.

use std::path::Path;

use parking_lot::Mutex;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::wire::{certificates_from_pem, key_from_pem, provider};

/// A self-signed certificate that is its own authority. Server and client of a test use the same certificate.
struct Pair {
    chain: String,
    key: String,
}

impl Pair {
    fn make() -> Self {
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        Self { chain: certified.cert.pem(), key: certified.signing_key.serialize_pem() }
    }

    /// Settings of a server that trusts only clients with this certificate.
    fn acceptor(&self) -> TlsAcceptor {
        let chain = certificates_from_pem(self.chain.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(chain[0].clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap();
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key_from_pem(self.key.as_bytes()).unwrap());
        TlsAcceptor::from(Arc::new(config.unwrap()))
    }

    fn write(&self, folder: &Path) {
        for (name, text) in [("ca.crt", &self.chain), ("tls.crt", &self.chain), ("tls.key", &self.key)] {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
}

/// Starts a server that answers every request with `{}` and uses the present TLS settings.
async fn serve(acceptor: Arc<Mutex<TlsAcceptor>>) -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.lock().clone();
            connections.spawn(async move {
                let Ok(mut tls) = acceptor.accept(tcp).await else { return };
                let mut request = [0; 4096];
                while tls.read(&mut request).await.is_ok_and(|read| read > 0) {
                    let _ = tls.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
                }
            });
        }
    });
    (port, tasks)
}

#[tokio::test]
async fn a_rotated_authority_and_client_certificate_are_used_without_a_restart_and_bad_files_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let first = Pair::make();
    first.write(folder.path());
    let acceptor = Arc::new(Mutex::new(first.acceptor()));
    let (port, _server) = serve(Arc::clone(&acceptor)).await;
    let path = folder.path().join("kubeconfig");
    let text = format!(
        "current-context: c\nclusters: [{{name: k, cluster: {{server: \"https://127.0.0.1:{port}\", certificate-authority: ca.crt}}}}]\n\
         users: [{{name: u, user: {{client-certificate: tls.crt, client-key: tls.key}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    let client = Client::new(Cluster::find(Some(&path)).unwrap(), Transport::Http1);
    client.read("/a").await.unwrap();

    // Half of the next pair: the former one stays in use.
    let second = Pair::make();
    std::fs::write(folder.path().join("tls.crt"), &second.chain).unwrap();
    assert!(client.renew().is_err());
    client.forget_connections();
    client.read("/b").await.unwrap();

    // The server changes first, so that only the new files can work; the idle connection is not used any more.
    second.write(folder.path());
    *acceptor.lock() = second.acceptor();
    client.renew().unwrap();
    client.read("/c").await.unwrap();
}

/// The client checks its certificate files while no request waits, and also after it has found invalid files. The
/// test's clock is virtual.
#[tokio::test(start_paused = true)]
async fn the_files_are_looked_at_as_long_as_they_are_followed_also_after_bad_ones() {
    let folder = tempfile::tempdir().unwrap();
    Pair::make().write(folder.path());
    let path = folder.path().join("kubeconfig");
    let text = "current-context: c\nclusters: [{name: k, cluster: {server: \"https://127.0.0.1:1\", certificate-authority: ca.crt}}]\n\
                users: [{name: u, user: {client-certificate: tls.crt, client-key: tls.key}}]\n\
                contexts: [{name: c, context: {cluster: k, user: u}}]\n";
    std::fs::write(&path, text).unwrap();
    let client = Arc::new(Client::new(Cluster::find(Some(&path)).unwrap(), Transport::Http1));
    let first = client.link();
    let _follower = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(Arc::clone(&client).follow_files()));
    sleep(FOLLOW_INTERVAL * 2).await;
    assert!(Arc::ptr_eq(&first, &client.link()), "nothing has changed");
    let second = Pair::make();
    std::fs::write(folder.path().join("tls.crt"), &second.chain).unwrap();
    sleep(FOLLOW_INTERVAL * 2).await;
    assert!(Arc::ptr_eq(&first, &client.link()), "a certificate without its key is not used");
    second.write(folder.path());
    sleep(FOLLOW_INTERVAL * 2).await;
    assert!(!Arc::ptr_eq(&first, &client.link()), "the new pair is used");
}
