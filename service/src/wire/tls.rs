//! TLS settings of the client side: whom to trust, and who we are.
//!
//! Reads PEM; never logs what it read. The crypto provider is passed explicitly and is always aws-lc-rs.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

/// Files that hold the system's authorities on the usual distributions, tried in this order.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Whom a client trusts.
#[derive(Debug, Clone, Copy)]
pub enum Trust<'a> {
    /// The authorities of the machine; `SSL_CERT_FILE` names another bundle.
    System,
    /// Exactly the certificates in this PEM text.
    Pem(&'a [u8]),
}

/// A client certificate with its key.
pub struct Identity {
    /// Leaf first.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
}

/// Why TLS settings cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Text without a usable certificate.
    #[error("no certificate: {0}")]
    Certificate(String),
    /// Text without a usable revocation list.
    #[error("no revocation list: {0}")]
    RevocationList(String),
    /// Text without a usable private key.
    #[error("no private key: {0}")]
    Key(String),
    /// The library refused the combination.
    #[error("TLS settings: {0}")]
    Rustls(#[from] rustls::Error),
}

/// The one crypto provider of this service.
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

/// The first private key of a PEM text.
pub fn key_from_pem(pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| TlsError::Key(error.to_string()))
}

/// Client settings for TLS 1.2 and 1.3.
pub fn client_config(trust: Trust<'_>, identity: Option<Identity>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    match trust {
        // System bundles hold odd certificates; those that do not parse are skipped, as every TLS client does.
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
