//! The server's side of TLS: certificate, key and the authorities of clients, replaced while running when files change.
//!
//! What changed is taken only when all of it loads and fits; until then the old stays. A change makes new settings, with
//! no session of the old ones, so that nobody resumes past an authority that was removed. Open connections stay.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError as Refusal, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, UnixTime};
use tokio::sync::watch;

use super::health::Probe;
use super::metrics::Certificates;
use crate::wire::{TlsError, certificates_from_pem, expiry, facts, key_from_pem, provider};

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
    /// The authorities of clients cannot be used.
    #[error("{}: {source}", path.display())]
    ClientAuthorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::server::VerifierBuilderError,
    },
}

/// The files of a TLS listener, and who may call.
#[derive(Debug, Clone)]
pub struct Files {
    /// PEM file of the certificate chain, leaf first.
    pub certificate: PathBuf,
    /// PEM file of its key.
    pub key: PathBuf,
    /// PEM file of the authorities of client certificates; with it every caller must have one.
    pub client_ca: Option<PathBuf>,
    /// Names of which a client certificate must have one; empty accepts any certificate of the authorities.
    pub client_names: Vec<String>,
}

/// TLS settings that follow their files.
#[derive(Debug)]
pub struct ServerTls {
    files: Files,
    current: RwLock<Current>,
    metrics: Certificates,
}

#[derive(Debug, Clone)]
struct Current {
    loaded: Loaded,
    config: Arc<ServerConfig>,
}

/// What the files held, to notice a change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loaded {
    chain: Vec<CertificateDer<'static>>,
    authorities: Vec<CertificateDer<'static>>,
}

impl ServerTls {
    /// Reads the files; when they end is shown in `metrics`.
    pub fn load(files: Files, metrics: Certificates) -> Result<Arc<Self>, CertificateError> {
        let current = read(&files)?;
        let tls = Self { files, current: RwLock::new(current), metrics };
        tls.show_expiry();
        Ok(Arc::new(tls))
    }

    /// The settings for the next connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().config)
    }

    /// Follows the files until dropped; each change of `look` makes it look at once.
    pub async fn follow_files(self: Arc<Self>, mut look: watch::Receiver<u64>) {
        let mut refused = String::new();
        loop {
            tokio::select! {
                () = tokio::time::sleep(RELOAD_INTERVAL) => {}
                Ok(()) = look.changed() => {}
            }
            match read(&self.files) {
                Ok(fresh) => {
                    refused.clear();
                    if fresh.loaded != self.current.read().loaded {
                        *self.current.write() = fresh;
                        self.show_expiry();
                        tracing::info!(file = %self.files.certificate.display(), "certificates replaced");
                    }
                }
                // Said once for each distinct reason: half-written pairs are normal for a moment.
                Err(error) if error.to_string() != refused => {
                    refused = error.to_string();
                    tracing::warn!(%error, "certificates not replaced");
                }
                Err(_) => {}
            }
        }
    }

    fn show_expiry(&self) {
        let current = self.current.read();
        for (name, chain) in [("server", &current.loaded.chain), ("client-ca", &current.loaded.authorities)] {
            if let Some(ends) = expiry(chain) {
                self.metrics.of(name).set(ends);
            }
        }
    }
}

impl Probe for ServerTls {
    fn name(&self) -> &'static str {
        "certificate"
    }

    fn dead(&self) -> Option<String> {
        None
    }

    /// No call can succeed with an expired certificate; a restart would not help, so this is not about liveness.
    fn unready(&self) -> Option<String> {
        let loaded = self.current.read().loaded.clone();
        let ended =
            |chain: &[CertificateDer<'_>]| chain.first().and_then(facts).filter(|f| f.is_expired(SystemTime::now()));
        let all_ended = !loaded.authorities.is_empty()
            && loaded.authorities.iter().all(|one| facts(one).is_some_and(|f| f.is_expired(SystemTime::now())));
        if ended(&loaded.chain).is_some() {
            return Some(format!("{} has expired: replace it", self.files.certificate.display()));
        }
        let file = self.files.client_ca.as_deref().unwrap_or(Path::new("clientCA"));
        all_ended.then(|| format!("every authority in {} has expired: replace it", file.display()))
    }

    fn page(&self) -> Option<String> {
        None
    }
}

/// The library's verifier, and then the list of names.
#[derive(Debug)]
struct Named {
    inner: Arc<dyn ClientCertVerifier>,
    names: Vec<String>,
}

impl ClientCertVerifier for Named {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        let found = facts(end_entity).map(|facts| facts.names).unwrap_or_default();
        if found.iter().any(|name| self.names.contains(name)) {
            return Ok(verified);
        }
        Err(rustls::Error::InvalidCertificate(Refusal::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

fn read(files: &Files) -> Result<Current, CertificateError> {
    let pair = read_pair(&files.certificate, &files.key)?;
    let authorities = match &files.client_ca {
        Some(path) => certificates_from_pem(&read_file(path)?)
            .map_err(|source| CertificateError::Content { path: path.clone(), source })?,
        None => Vec::new(),
    };
    let loaded = Loaded { chain: pair.cert.clone(), authorities };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .expect("aws-lc-rs has suites for TLS 1.2 and 1.3");
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => builder.with_client_cert_verifier(verifier(path, &loaded.authorities, &files.client_names)?),
    };
    let mut config = builder.with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(pair)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Current { loaded, config: Arc::new(config) })
}

fn verifier(
    path: &Path,
    authorities: &[CertificateDer<'static>],
    names: &[String],
) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        let added = roots.add(authority.clone());
        added.map_err(|error| CertificateError::Content { path: path.into(), source: TlsError::Rustls(error) })?;
    }
    let inner = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    let inner = inner.map_err(|source| CertificateError::ClientAuthorities { path: path.into(), source })?;
    if names.is_empty() { Ok(inner) } else { Ok(Arc::new(Named { inner, names: names.to_vec() })) }
}

fn read_file(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::Read { path: path.into(), source })
}

fn read_pair(certificate: &Path, key: &Path) -> Result<CertifiedKey, CertificateError> {
    let content = |path: &Path| {
        let path = path.to_owned();
        move |source| CertificateError::Content { path, source }
    };
    let chain = certificates_from_pem(&read_file(certificate)?).map_err(content(certificate))?;
    let private = key_from_pem(&read_file(key)?).map_err(content(key))?;
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
mod tests;
