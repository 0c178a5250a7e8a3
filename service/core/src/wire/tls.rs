//! TLS settings of clients: trusted authorities and the client's own certificate.
//!
//! This module reads PEM texts and never logs them. The crypto provider of all TLS settings is aws-lc-rs, which is
//! passed explicitly.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};

/// Files with the system's trusted authorities on usual distributions; the first existing file is used.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

#[derive(Debug, Clone, Copy)]
pub enum Trust<'a> {
    /// The authorities that the system trusts; `SSL_CERT_FILE` names another file.
    System,
    /// The authorities are only the certificates in this PEM text.
    Pem(&'a [u8]),
}

pub struct Identity {
    /// The certificate chain, leaf first.
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("no certificate: {0}")]
    Certificate(String),
    #[error("no revocation list: {0}")]
    RevocationList(String),
    #[error("no private key: {0}")]
    Key(String),
    #[error("TLS settings: {0}")]
    Rustls(#[from] rustls::Error),
}

/// The crypto provider that the whole service uses.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// All certificates of a PEM text, at least one.
pub fn certificates_from_pem(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| TlsError::Certificate(error.to_string()))?;
    if found.is_empty() { Err(TlsError::Certificate("the PEM text holds none".into())) } else { Ok(found) }
}

/// All revocation lists of a PEM text, at least one.
pub fn revocation_lists_from_pem(pem: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| TlsError::RevocationList(error.to_string()))?;
    if found.is_empty() { Err(TlsError::RevocationList("the PEM text holds none".into())) } else { Ok(found) }
}

pub fn key_from_pem(pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| TlsError::Key(error.to_string()))
}

/// A certificate chain and its key; an error if they do not belong together.
pub fn pair(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<CertifiedKey, TlsError> {
    let pair = CertifiedKey::new(chain, provider().key_provider.load_private_key(key)?);
    match pair.keys_match() {
        // "Unknown" means a key that cannot show its public part, for example in hardware.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(pair),
        Err(error) => Err(error.into()),
    }
}

/// Whether a client that trusts only `authorities` accepts `chain` for the server `name` at `now`; the error is the
/// reason.
pub fn verifies(
    authorities: &[CertificateDer<'_>],
    chain: &[CertificateDer<'_>],
    name: &str,
    now: SystemTime,
) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone().into_owned()).map_err(|error| error.to_string())?;
    }
    let (leaf, rest) = chain.split_first().ok_or("there is no certificate")?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    let verifier = verifier.map_err(|error| error.to_string())?;
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let checked = verifier.verify_server_cert(leaf, rest, &name, &[], UnixTime::since_unix_epoch(since));
    checked.map(drop).map_err(|error| error.to_string())
}

pub fn client_config(trust: Trust<'_>, identity: Option<Identity>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    match trust {
        // System bundles hold odd certificates; unreadable ones are skipped, as in every TLS client.
        Trust::System => drop(roots.add_parsable_certificates(system_authorities())),
        Trust::Pem(pem) => {
            for certificate in certificates_from_pem(pem)? {
                roots.add(certificate)?;
            }
        }
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_root_certificates(roots);
    Ok(match identity {
        Some(identity) => builder.with_client_auth_cert(identity.chain, identity.key)?,
        None => builder.with_no_client_auth(),
    })
}

fn system_authorities() -> Vec<CertificateDer<'static>> {
    let named = std::env::var_os("SSL_CERT_FILE").map(std::path::PathBuf::from);
    let candidates = named.iter().map(std::path::PathBuf::as_path).chain(SYSTEM_BUNDLES.iter().map(Path::new));
    for path in candidates {
        if let Some(found) = std::fs::read(path).ok().and_then(|pem| certificates_from_pem(&pem).ok()) {
            return found;
        }
    }
    Vec::new()
}
