//! Loads TLS settings from files. All TLS files are read and checked before any of them is used.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use zeroize::Zeroizing;

use super::{CertificateError, Current, Files, Loaded, Rules, verifier};
use crate::wire::{
    TlsError, certificates_from_pem, key_from_pem, lists_end, pair, provider, revocation_lists_from_pem,
};

/// Permission bits of users outside the owner's group. The group may read a key: a Secret that is mounted with
/// `fsGroup` belongs to the group.
const OTHERS: u32 = 0o007;

#[derive(Debug)]
struct Nothing;

impl ResolvesServerCert for Nothing {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

pub(super) fn read(files: &Files) -> Result<Current, CertificateError> {
    let pair = match &files.handed {
        Some(handed) => handed.pair(),
        None => Some(read_pair(&files.certificate, &files.key, files.rules.private_key)?),
    };
    let chain = pair.as_ref().map(|pair| pair.cert.clone()).unwrap_or_default();
    let identity: Arc<dyn ResolvesServerCert> = match pair {
        Some(pair) => Arc::new(SingleCertAndKey::from(pair)),
        // A client gets a failed handshake, and readiness keeps clients away.
        None => Arc::new(Nothing),
    };
    let mut authorities = Vec::new();
    for path in &files.client_cas {
        let found = certificates_from_pem(&read_file(path)?);
        authorities.extend(found.map_err(CertificateError::content(path))?);
    }
    let mut revoked = Vec::new();
    for path in &files.revoked {
        let found = revocation_lists_from_pem(&read_file(path)?);
        revoked.extend(found.map_err(CertificateError::content(path))?);
    }
    let loaded = Loaded { chain, authorities, revoked };
    let verifier = if files.client_cas.is_empty() { None } else { Some(verifier::build(files, &loaded)?) };
    let builder = versions(&files.rules)?;
    let builder = match &verifier {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
    };
    let mut config = builder.with_cert_resolver(identity);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let lists_end = lists_end(&loaded.revoked);
    Ok(Current { loaded, config: Arc::new(config), verifier, lists_end })
}

fn versions(rules: &Rules) -> Result<rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier>, CertificateError> {
    let mut provider = provider();
    if !rules.suites.is_empty() {
        Arc::make_mut(&mut provider).cipher_suites.clone_from(&rules.suites);
    }
    let builder = ServerConfig::builder_with_provider(provider);
    let versions: &[&rustls::SupportedProtocolVersion] =
        if rules.tls13_only { &[&rustls::version::TLS13] } else { &[&rustls::version::TLS13, &rustls::version::TLS12] };
    builder.with_protocol_versions(versions).map_err(CertificateError::Suites)
}

fn read_file(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::Read { path: path.into(), source })
}

/// The text of a key; its memory is overwritten on drop.
fn read_key(path: &Path, private: bool) -> Result<Zeroizing<Vec<u8>>, CertificateError> {
    if private {
        let failed = |source| CertificateError::Read { path: path.into(), source };
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(CertificateError::Exposed { path: path.into(), mode });
        }
    }
    read_file(path).map(Zeroizing::new)
}

fn read_pair(certificate: &Path, key: &Path, private: bool) -> Result<CertifiedKey, CertificateError> {
    let chain = certificates_from_pem(&read_file(certificate)?).map_err(CertificateError::content(certificate))?;
    let private = key_from_pem(&read_key(key, private)?).map_err(CertificateError::content(key))?;
    match pair(chain, private) {
        Ok(pair) => Ok(pair),
        Err(TlsError::Rustls(rustls::Error::InconsistentKeys(_))) => {
            Err(CertificateError::Mismatch { certificate: certificate.into(), key: key.into() })
        }
        Err(error) => Err(CertificateError::content(key)(error)),
    }
}
