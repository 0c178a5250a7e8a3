//! Verification of clients: the library's verifier of chain, validity, purpose and revocation, then the listener's own
//! rules.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError as Refused, DigitallySignedStruct, DistinguishedName, OtherError, RootCertStore};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::{CertificateError, Files, Loaded};
use crate::wire::{TlsError, facts, provider};

/// The certificate is valid for longer than this limit.
#[derive(Debug, thiserror::Error)]
#[error("the certificate is valid for longer than {} h", .0.as_secs() / 3600)]
pub(super) struct LongLived(Duration);

/// The verifier of a listener; `files` has at least one authority.
pub(super) fn build(files: &Files, loaded: &Loaded) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
    let path = files.client_cas.first().map_or(Path::new("clientCA"), PathBuf::as_path);
    let mut roots = RootCertStore::empty();
    for authority in &loaded.authorities {
        roots.add(authority.clone()).map_err(|error| CertificateError::content(path)(TlsError::Rustls(error)))?;
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .with_crls(loaded.revoked.iter().cloned())
        // A list that is out of date may lack the very certificate that was stolen.
        .enforce_revocation_expiration();
    if !files.rules.revocation_required {
        builder = builder.allow_unknown_revocation_status();
    }
    let inner = builder.build().map_err(|source| CertificateError::ClientAuthorities { path: path.into(), source })?;
    let (names, rules) = (files.client_names.clone(), &files.rules);
    if names.is_empty() && rules.lifetime_max.is_none() && !rules.purpose_required {
        return Ok(inner);
    }
    Ok(Arc::new(Ruled { inner, names, purpose_required: rules.purpose_required, lifetime_max: rules.lifetime_max }))
}

/// The library's verifier, followed by the accepted names and the longest validity.
#[derive(Debug)]
struct Ruled {
    inner: Arc<dyn ClientCertVerifier>,
    names: Vec<String>,
    purpose_required: bool,
    lifetime_max: Option<Duration>,
}

impl ClientCertVerifier for Ruled {
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
        let refused = rustls::Error::InvalidCertificate;
        let facts = facts(end_entity).ok_or(refused(Refused::BadEncoding))?;
        if self.purpose_required && !facts.is_for_clients {
            return Err(refused(Refused::InvalidPurpose));
        }
        if !self.names.is_empty() && !facts.names.iter().any(|name| self.names.contains(name)) {
            return Err(refused(Refused::ApplicationVerificationFailure));
        }
        match self.lifetime_max {
            Some(most) if facts.lifetime() > most => {
                Err(refused(Refused::Other(OtherError(Arc::new(LongLived(most))))))
            }
            _ => Ok(verified),
        }
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
