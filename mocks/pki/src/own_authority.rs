//! The check of client certificates that are their own certificate authority.
//!
//! Owns one difference between Go and webpki. Go's `x509.Verify` accepts a certificate that is itself among the roots.
//! webpki refuses a certificate that is marked as an authority (`CaUsedAsEndEntity`). Some test kits make such client
//! certificates.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};

/// Accepts every certificate that the verifier `checked` accepts, and the certificates of the authorities themselves.
#[derive(Debug)]
pub(super) struct OrItself {
    checked: Arc<dyn ClientCertVerifier>,
    authorities: Vec<CertificateDer<'static>>,
}

impl OrItself {
    pub(super) fn new(checked: Arc<dyn ClientCertVerifier>, authorities: Vec<CertificateDer<'static>>) -> Arc<Self> {
        Arc::new(Self { checked, authorities })
    }
}

impl ClientCertVerifier for OrItself {
    fn offer_client_auth(&self) -> bool {
        self.checked.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.checked.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.checked.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.authorities.iter().any(|authority| authority == end_entity) {
            return Ok(ClientCertVerified::assertion());
        }
        self.checked.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.checked.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.checked.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.checked.supported_verify_schemes()
    }
}
