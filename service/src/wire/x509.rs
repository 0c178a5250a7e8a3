//! What we read of a certificate besides its key: whose it is and until when.
//!
//! Pure. Trust is decided elsewhere; nothing here verifies a signature.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::CN;
use x509_cert::der::{Any, Decode as _, Tag, Tagged as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Names of one certificate that are looked at; more are of no use to anybody honest.
const NAMES_MAX: usize = 64;

/// What a certificate says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The common name, then DNS names, URIs and mail addresses, as written; at most 64.
    pub names: Vec<String>,
    /// First moment of its validity.
    pub not_before: SystemTime,
    /// Last moment of its validity.
    pub not_after: SystemTime,
}

impl Facts {
    /// Whether it is not valid any more at `now`.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        now > self.not_after
    }
}

/// Reads `certificate`; `None` when it is no X.509 certificate.
pub fn facts(certificate: &CertificateDer<'_>) -> Option<Facts> {
    let certificate = Certificate::from_der(certificate).ok()?.tbs_certificate;
    let subject = certificate.subject.0.iter().flat_map(|part| part.0.iter());
    let common = subject.filter(|part| part.oid == CN).filter_map(|part| text(&part.value));
    let alternative = certificate.get::<SubjectAltName>().ok().flatten().map(|(_, names)| names.0).unwrap_or_default();
    let alternative = alternative.into_iter().filter_map(|name| match name {
        GeneralName::DnsName(name) | GeneralName::Rfc822Name(name) | GeneralName::UniformResourceIdentifier(name) => {
            Some(name.to_string())
        }
        _ => None,
    });
    let at = |time: x509_cert::time::Time| UNIX_EPOCH + time.to_unix_duration();
    Some(Facts {
        names: common.chain(alternative).take(NAMES_MAX).collect(),
        not_before: at(certificate.validity.not_before),
        not_after: at(certificate.validity.not_after),
    })
}

/// The first moment at which one of `chain` is not valid any more, as seconds since 1970; `None` when none can be read.
pub fn expiry(chain: &[CertificateDer<'_>]) -> Option<i64> {
    let first = chain.iter().filter_map(|certificate| facts(certificate)).map(|facts| facts.not_after).min()?;
    let since = first.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).ok()
}

fn text(value: &Any) -> Option<String> {
    match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_validity_are_read_and_rubbish_is_none() {
        let mut params = rcgen::CertificateParams::new(["api.local".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "kube-apiserver");
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let facts = facts(certificate.der()).unwrap();
        assert_eq!(facts.names, ["kube-apiserver", "api.local"]);
        assert_eq!(expiry(&[certificate.der().clone()]), Some(1_609_459_200));
        assert!(facts.is_expired(SystemTime::now()));
        assert!(!facts.is_expired(facts.not_after));
        assert_eq!(super::facts(&CertificateDer::from_slice(b"no certificate")), None);
    }
}
