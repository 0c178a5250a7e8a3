//! The server's side of TLS: certificate, key, the authorities of clients and their revocation lists, replaced while running when
//! files change.
//!
//! What changed is taken only when all of it loads and fits; until then the old stays. A change makes new settings, with
//! no session of the old ones, so that nobody resumes past an authority that was removed. Open connections stay; whoever serves
//! them may ask a [`ClientCertificate`] before each call whether its client would still be let in.

mod client;
mod handed;
mod load;
mod refusal;
mod verifier;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ServerConfig, SupportedCipherSuite};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};
use tokio::sync::watch;

use super::expiry::Certificates;
use super::health::Probe;
use crate::wire::{TlsError, expiry, facts};

pub use client::ClientCertificate;
pub use handed::Handed;
pub use refusal::Refusal;

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
        /// Error of the system.
        source: std::io::Error,
    },
    /// The content of a file is not what it should be.
    #[error("{}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The reason.
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
    /// Others may read the key.
    #[error("{}: mode {mode:04o} lets other users read the key: remove their rights (chmod 0400)", path.display())]
    Exposed {
        /// The key file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The authorities of clients, or their revocation lists, cannot be used.
    #[error("{}: {source}", path.display())]
    ClientAuthorities {
        /// The first file of authorities.
        path: PathBuf,
        /// The reason.
        source: rustls::server::VerifierBuilderError,
    },
    /// The chosen suites and versions do not fit.
    #[error("the cipher suites do not fit TLS 1.3: {0}")]
    Suites(rustls::Error),
}

impl CertificateError {
    /// The error of a file whose content is wrong.
    fn content(path: &Path) -> impl Fn(TlsError) -> Self {
        move |source| Self::Content { path: path.to_owned(), source }
    }
}

/// The files of a TLS listener, and who may call.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// PEM file of the certificate chain, leaf first.
    pub certificate: PathBuf,
    /// PEM file of its key.
    pub key: PathBuf,
    /// The certificate when it is handed over by this process; the two files are not looked at then.
    pub handed: Option<Arc<Handed>>,
    /// PEM files of the authorities of client certificates; with one every caller must have a certificate.
    pub client_cas: Vec<PathBuf>,
    /// Names of which a client certificate must have one; empty accepts any certificate of the authorities.
    pub client_names: Vec<String>,
    /// PEM files of lists of revoked certificates.
    pub revoked: Vec<PathBuf>,
    /// Demands beyond those of every listener.
    pub rules: Rules,
}

/// Demands of a strict listener.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a demand of its own")]
pub struct Rules {
    /// TLS 1.3 only.
    pub tls13_only: bool,
    /// The suites that are offered; empty for all.
    pub suites: Vec<SupportedCipherSuite>,
    /// A key that others may read is refused.
    pub private_key: bool,
    /// A certificate of an authority that has no revocation list is refused.
    pub revocation_required: bool,
    /// A client certificate that does not say that it is for clients is refused; without this, only one that says it is for something else.
    pub purpose_required: bool,
    /// A client certificate that is valid for longer is refused.
    pub lifetime_max: Option<Duration>,
}

/// How the certificates of a listener are called in the metrics: a closed list.
#[derive(Debug, Clone, Copy)]
pub struct Labels {
    /// The check of health that looks at them.
    pub check: &'static str,
    /// Its own.
    pub server: &'static str,
    /// The authorities of its clients.
    pub client_ca: &'static str,
    /// Their revocation lists.
    pub revoked: &'static str,
}

/// TLS settings that follow their files.
#[derive(Debug)]
pub struct ServerTls {
    files: Files,
    labels: Labels,
    /// Changes with `current`, so that who has looked needs no lock to see that nothing is new.
    generation: AtomicU64,
    current: RwLock<Current>,
    metrics: Certificates,
}

#[derive(Debug, Clone)]
struct Current {
    loaded: Loaded,
    config: Arc<ServerConfig>,
    /// Absent where clients need no certificate.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// When the first revocation list is out of date.
    lists_end: Option<SystemTime>,
}

/// Content of the files, to notice a change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loaded {
    chain: Vec<CertificateDer<'static>>,
    authorities: Vec<CertificateDer<'static>>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
}

impl ServerTls {
    /// Reads the files; when they end is shown in `metrics` under `labels`.
    pub fn load(files: Files, labels: Labels, metrics: Certificates) -> Result<Arc<Self>, CertificateError> {
        let current = RwLock::new(load::read(&files)?);
        let tls = Self { files, labels, generation: AtomicU64::new(0), current, metrics };
        tls.show_expiry();
        Ok(Arc::new(tls))
    }

    /// The certificate chain that is shown to new connections, leaf first; empty while there is none.
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.current.read().loaded.chain.clone()
    }

    /// How often what the files hold has changed; asked before [`Self::config`].
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The settings for the next connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().config)
    }

    /// Follows the files until dropped; each change of `look` makes it look at once.
    pub async fn follow_files(self: Arc<Self>, mut look: watch::Receiver<u64>) {
        let mut refused = String::new();
        let mut handed = self.files.handed.as_ref().map(|handed| handed.changes());
        loop {
            let handed_over = async {
                match &mut handed {
                    Some(changes) => changes.changed().await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(RELOAD_INTERVAL) => {}
                Ok(()) = look.changed() => {}
                true = handed_over => {}
            }
            match load::read(&self.files) {
                Ok(fresh) => {
                    refused.clear();
                    if fresh.loaded != self.current.read().loaded {
                        *self.current.write() = fresh;
                        let generation = self.generation.fetch_add(1, Ordering::Release) + 1;
                        self.show_expiry();
                        tracing::info!(name: crate::logs::names::CERTIFICATES_REPLACED, file = %self.source(), generation, "certificates replaced");
                    }
                }
                // Said once for each distinct reason: half-written pairs are normal for a moment.
                Err(error) if error.to_string() != refused => {
                    refused = error.to_string();
                    tracing::warn!(name: crate::logs::names::CERTIFICATES_KEPT, %error, "certificates not replaced");
                }
                Err(_) => {}
            }
        }
    }

    fn show_expiry(&self) {
        let current = self.current.read();
        let Loaded { chain, authorities, .. } = &current.loaded;
        for (name, chain) in [(self.labels.server, chain), (self.labels.client_ca, authorities)] {
            if let Some(ends) = expiry(chain) {
                self.metrics.of(name).set(ends);
            }
        }
        let since = current.lists_end.and_then(|ends| ends.duration_since(SystemTime::UNIX_EPOCH).ok());
        if let Some(since) = since {
            self.metrics.of(self.labels.revoked).set(i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
        }
    }

    /// Where the certificate comes from.
    fn source(&self) -> String {
        match &self.files.handed {
            Some(handed) => handed.source().to_owned(),
            None => self.files.certificate.display().to_string(),
        }
    }

    fn first_authority_file(&self) -> &Path {
        self.files.client_cas.first().map_or(Path::new("clientCA"), PathBuf::as_path)
    }
}

impl Probe for ServerTls {
    fn name(&self) -> &'static str {
        self.labels.check
    }

    /// No call can succeed with an expired certificate; a restart would not help, so this is not about liveness.
    fn unready(&self) -> Option<String> {
        let loaded = self.current.read().loaded.clone();
        let ended =
            |chain: &[CertificateDer<'_>]| chain.first().and_then(facts).filter(|f| f.is_expired(SystemTime::now()));
        let all_ended = !loaded.authorities.is_empty()
            && loaded.authorities.iter().all(|one| facts(one).is_some_and(|f| f.is_expired(SystemTime::now())));
        if let Some(handed) = &self.files.handed {
            if loaded.chain.is_empty() {
                return Some(format!(
                    "there is no certificate yet: {}",
                    handed.trouble().as_deref().unwrap_or("waiting for it")
                ));
            }
            if ended(&loaded.chain).is_some() {
                let why = handed.trouble().unwrap_or_else(|| "no newer one was made".into());
                return Some(format!("the certificate has expired: {why}"));
            }
        } else if ended(&loaded.chain).is_some() {
            return Some(format!("{} has expired: replace it", self.files.certificate.display()));
        }
        let file = self.first_authority_file();
        all_ended.then(|| format!("every authority in {} has expired: replace it", file.display()))
    }

    /// An old revocation list refuses the clients of one authority; those of others go on.
    fn note(&self) -> Option<String> {
        if let Some(why) = self.files.handed.as_ref().and_then(|handed| handed.trouble()) {
            return Some(format!("the certificate stays as it is: {why}"));
        }
        let ends = self.current.read().lists_end?;
        (ends <= SystemTime::now()).then(|| "a list of revoked certificates is out of date: replace it".to_owned())
    }
}

#[cfg(test)]
mod tests;
