//! The check of a server certificate by a client, as in Go.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use super::leaf;

/// Accepts certificates that a certificate in `trusted` has signed, and the certificates in `trusted` themselves.
///
/// For Go (`Certificate.Verify` of crypto/x509) every trusted certificate is a complete chain without its issuer.
/// Examples are a server certificate in a `caBundle`, as envtest and many charts write it, and a certificate that is
/// its own CA, as `openssl req -x509` makes it. rustls's own verifier requires an issuer, and refuses every server
/// certificate that is marked as a CA. The returned verifier still checks dates, purpose and names of the certificate.
///
/// # Errors
///
/// When `trusted` is empty or contains something else than certificates.
pub fn verifier(
    trusted: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(certificate.clone())?;
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    let inner = inner.map_err(|error| Error::General(error.to_string()))?;
    Ok(Arc::new(Verifier { inner, trusted: trusted.to_vec() }))
}

#[derive(Debug)]
struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(_) if self.trusted.contains(end_entity) => {
                leaf::check(end_entity, now)?;
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.inner.root_hint_subjects()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    /// A certificate like the output of `openssl req -x509`: signed by itself and marked as a CA.
    fn own_ca() -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["webhook.shop.svc".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    /// The start of 2025 plus this number of years.
    fn at(years: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs((55 + years) * 31_556_952))
    }

    fn verify(
        trusted: &CertificateDer<'static>,
        shown: &CertificateDer<'_>,
        name: &str,
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verifier = verifier(std::slice::from_ref(trusted), &crate::tls::provider()).unwrap();
        verifier.verify_server_cert(shown, &[], &name.to_owned().try_into().unwrap(), &[], now)
    }

    #[test]
    fn a_trusted_certificate_may_be_the_servers_own() {
        let own = own_ca();
        verify(&own, &own, "webhook.shop.svc", at(0)).unwrap();
    }

    #[test]
    fn its_name_and_its_dates_count() {
        let own = own_ca();
        let error = |name, now| verify(&own, &own, name, now).unwrap_err().to_string();
        assert!(error("other.shop.svc", at(0)).contains("not valid for name"), "{}", error("other.shop.svc", at(0)));
        assert!(error("webhook.shop.svc", at(10)).contains("expired"), "{}", error("webhook.shop.svc", at(10)));
    }

    #[test]
    fn another_one_like_it_is_not_believed() {
        let error = verify(&own_ca(), &own_ca(), "webhook.shop.svc", at(0)).unwrap_err();
        assert!(error.to_string().contains("CaUsedAsEndEntity"), "{error}");
    }

    /// As written by envtest, a `caBundle` contains the server's own certificate, which another authority has signed.
    #[test]
    fn a_certificate_in_the_bundle_needs_nobody_who_signed_it() {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = rcgen::Issuer::new(authority, KeyPair::generate().unwrap());
        let leaf = |purpose| {
            let mut params = CertificateParams::new(["webhook.shop.svc".to_owned()]).unwrap();
            params.extended_key_usages = vec![purpose];
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2030, 1, 1);
            params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().clone()
        };
        let server = leaf(rcgen::ExtendedKeyUsagePurpose::ServerAuth);
        verify(&server, &server, "webhook.shop.svc", at(0)).unwrap();
        let error = |name, now| verify(&server, &server, name, now).unwrap_err().to_string();
        assert!(error("other.shop.svc", at(0)).contains("not valid for name"), "{}", error("other.shop.svc", at(0)));
        assert!(error("webhook.shop.svc", at(10)).contains("expired"), "{}", error("webhook.shop.svc", at(10)));
        let client = leaf(rcgen::ExtendedKeyUsagePurpose::ClientAuth);
        assert!(verify(&client, &client, "webhook.shop.svc", at(0)).is_err(), "it is for clients");
    }

    #[test]
    fn without_certificates_there_is_no_trust() {
        assert!(verifier(&[], &crate::tls::provider()).is_err());
        assert!(verifier(&[vec![1, 2, 3].into()], &crate::tls::provider()).is_err());
    }
}
