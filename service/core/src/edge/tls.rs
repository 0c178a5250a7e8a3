//! Server TLS: certificate, key, client authorities and revocation lists. A running process reloads changed files.
//!
//! A changed file takes effect only if all files load and belong together; otherwise the former settings stay. New TLS
//! settings accept no sessions of the former settings, so that no client avoids the check against a removed authority
//! by resumption. Open connections stay: a server can ask [`ClientCertificate`] before each call whether its client
//! would still be accepted.

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

/// Time between two checks of the files. A rotated certificate is used long before the former one expires.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Content { path: PathBuf, source: TlsError },
    #[error("{} does not belong to {}", key.display(), certificate.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("{}: mode {mode:04o} lets other users read the key: remove their rights (chmod 0400)", path.display())]
    Exposed { path: PathBuf, mode: u32 },
    /// The authorities of clients or their revocation lists cannot be used.
    #[error("{}: {source}", path.display())]
    ClientAuthorities {
        /// The first of the files with authorities.
        path: PathBuf,
        source: rustls::server::VerifierBuilderError,
    },
    #[error("the cipher suites do not fit TLS 1.3: {0}")]
    Suites(rustls::Error),
}

impl CertificateError {
    /// Makes errors about invalid content of `path`.
    fn content(path: &Path) -> impl Fn(TlsError) -> Self {
        move |source| Self::Content { path: path.to_owned(), source }
    }
}

/// The files of a TLS listener, and the listener's rules for clients.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// PEM file with the server's certificate chain, leaf first.
    pub certificate: PathBuf,
    /// PEM file of the key of the server's certificate.
    pub key: PathBuf,
    /// A certificate from another module of this process. If `handed` is set, `certificate` and `key` are not read.
    pub handed: Option<Arc<Handed>>,
    /// PEM files with the authorities of client certificates. If `client_cas` is not empty, every client needs a
    /// certificate.
    pub client_cas: Vec<PathBuf>,
    /// Accepted names in client certificates. If `client_names` is empty, any certificate of the authorities is
    /// accepted.
    pub client_names: Vec<String>,
    /// PEM files of lists of revoked certificates.
    pub revoked: Vec<PathBuf>,
    pub rules: Rules,
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a demand of its own")]
pub struct Rules {
    pub tls13_only: bool,
    /// The offered cipher suites; an empty list means all.
    pub suites: Vec<SupportedCipherSuite>,
    /// Refuse a key that other users may read.
    pub private_key: bool,
    /// Refuse a certificate whose authority has no revocation list.
    pub revocation_required: bool,
    /// Refuse a client certificate that does not state client use. Without this rule, only certificates that state
    /// another use are refused.
    pub purpose_required: bool,
    /// Longest period of validity of an accepted client certificate; `None` for no limit.
    pub lifetime_max: Option<Duration>,
}

/// Names of a listener's certificates: label values and a health check, all from a closed list.
#[derive(Debug, Clone, Copy)]
pub struct Labels {
    /// The name of the health check of these certificates.
    pub check: &'static str,
    /// Label of the server's own certificate.
    pub server: &'static str,
    /// Label of the client authorities.
    pub client_ca: &'static str,
    pub revoked: &'static str,
}

/// TLS settings that are reloaded when their files change.
#[derive(Debug)]
pub struct ServerTls {
    files: Files,
    labels: Labels,
    /// A number that changes with `current`, so that readers notice new settings without the lock of `current`.
    generation: AtomicU64,
    current: RwLock<Current>,
    metrics: Certificates,
}

#[derive(Debug, Clone)]
struct Current {
    loaded: Loaded,
    config: Arc<ServerConfig>,
    /// The verifier of client certificates; `None` if clients need no certificate.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// The earliest expiry of a revocation list.
    lists_end: Option<SystemTime>,
}

/// The content of the TLS files, which is compared to notice a change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loaded {
    chain: Vec<CertificateDer<'static>>,
    authorities: Vec<CertificateDer<'static>>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
}

impl ServerTls {
    /// Reads the files that `files` names. The expiry times are written to `metrics` under `labels`.
    pub fn load(files: Files, labels: Labels, metrics: Certificates) -> Result<Arc<Self>, CertificateError> {
        let current = RwLock::new(load::read(&files)?);
        let tls = Self { files, labels, generation: AtomicU64::new(0), current, metrics };
        tls.show_expiry();
        Ok(Arc::new(tls))
    }

    /// The certificate chain for new connections, leaf first; empty if there is no certificate yet.
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.current.read().loaded.chain.clone()
    }

    /// Number of times that the settings have changed. Read the generation before [`Self::config`].
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The settings for the next connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().config)
    }

    /// Checks the TLS files again and again, and at once when `look` changes. Runs until dropped.
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
                // Logged once for each distinct reason: half-written pairs are normal for a moment.
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

    /// The source of the certificate, for messages.
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

    /// Not ready if the certificate has expired, because no call can succeed. Liveness does not change, because a
    /// restart would not help.
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

    /// A note about an expired revocation list: clients of one authority are refused, others are accepted.
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
