//! The server's certificate: read, checked, and replaced while running when its files change.
//!
//! A new pair is taken only when certificate and key load and fit each other; until then the old one stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::wire::{TlsError, certificates_from_pem, key_from_pem, provider};

/// How often the files are looked at: a rotated certificate is in use long before the old one ends.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The content of a file is not what it should be.
    #[error("{}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: TlsError,
    },
    /// Key and certificate do not belong together.
    #[error("{} does not belong to {}", key.display(), certificate.display())]
    Mismatch {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
    },
}

/// The certificate in use.
#[derive(Debug)]
pub struct Certificate {
    chain_file: PathBuf,
    key_file: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads the pair of files.
    pub fn load(certificate: &Path, key: &Path) -> Result<Arc<Self>, CertificateError> {
        let current = RwLock::new(Arc::new(read(certificate, key)?));
        Ok(Arc::new(Self { chain_file: certificate.into(), key_file: key.into(), current }))
    }

    /// Server settings for TLS 1.2 and 1.3 with HTTP/2 and HTTP/1.1.
    pub fn server_config(self: &Arc<Self>) -> ServerConfig {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .expect("aws-lc-rs has suites for TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }

    /// Follows the files until dropped.
    pub async fn follow_files(self: Arc<Self>) {
        let mut refused = String::new();
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            match read(&self.chain_file, &self.key_file) {
                Ok(fresh) => {
                    refused.clear();
                    if fresh.cert != self.current.read().cert {
                        *self.current.write() = Arc::new(fresh);
                        tracing::info!(file = %self.chain_file.display(), "certificate replaced");
                    }
                }
                // Said once for each distinct reason: half-written pairs are normal for a moment.
                Err(error) if error.to_string() != refused => {
                    refused = error.to_string();
                    tracing::warn!(%error, "certificate not replaced");
                }
                Err(_) => {}
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, CertificateError> {
    let file = |path: &Path| std::fs::read(path).map_err(|source| CertificateError::Read { path: path.into(), source });
    let content = |path: &Path| {
        let path = path.to_owned();
        move |source| CertificateError::Content { path, source }
    };
    let chain = certificates_from_pem(&file(certificate)?).map_err(content(certificate))?;
    let private = key_from_pem(&file(key)?).map_err(content(key))?;
    let signing = provider().key_provider.load_private_key(private);
    let signing = signing.map_err(|error| content(key)(TlsError::Rustls(error)))?;
    let pair = CertifiedKey::new(chain, signing);
    match pair.keys_match() {
        // "Unknown" means a key that cannot tell its public part, for example in hardware.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(CertificateError::Mismatch { certificate: certificate.into(), key: key.into() })
        }
        Err(error) => Err(content(certificate)(TlsError::Rustls(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a fresh pair and answers certificate and key.
    fn write(folder: &Path, name: &str) -> (String, String) {
        let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let (chain, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
        std::fs::write(folder.join("tls.crt"), &chain).unwrap();
        std::fs::write(folder.join("tls.key"), &key).unwrap();
        (chain, key)
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_pair_is_taken_and_half_a_pair_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (chain_file, key_file) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let (first, _) = write(folder.path(), "first");
        let certificate = Certificate::load(&chain_file, &key_file).unwrap();
        let follower = tokio::spawn(Arc::clone(&certificate).follow_files());
        let current = || certificate.current.read().cert.clone();
        let of = |pem: &str| certificates_from_pem(pem.as_bytes()).unwrap();
        assert_eq!(current(), of(&first));
        let (second, key) = write(folder.path(), "second");
        std::fs::write(&key_file, "half").unwrap();
        tokio::time::sleep(RELOAD_INTERVAL * 2).await;
        assert_eq!(current(), of(&first), "a certificate without its key is not used");
        std::fs::write(&key_file, key).unwrap();
        tokio::time::sleep(RELOAD_INTERVAL * 2).await;
        assert_eq!(current(), of(&second));
        follower.abort();
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (first, _) = write(folder.path(), "first");
        write(folder.path(), "second");
        std::fs::write(folder.path().join("tls.crt"), first).unwrap();
        let error = Certificate::load(&folder.path().join("tls.crt"), &folder.path().join("tls.key")).unwrap_err();
        assert!(matches!(error, CertificateError::Mismatch { .. }), "{error}");
    }
}
