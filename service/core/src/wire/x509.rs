//! The names, purpose and validity of a certificate.
//!
//! This module verifies no signatures and decides no trust.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_cert::Certificate;
use x509_cert::crl::CertificateList;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::CN;
use x509_cert::der::oid::db::rfc5280::ID_KP_CLIENT_AUTH;
use x509_cert::der::{Any, Decode as _, Tag, Tagged as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{ExtendedKeyUsage, SubjectAltName};

/// Maximum number of names that are read of one certificate; no honest certificate has more.
const NAMES_MAX: usize = 64;

/// A subject alternative name with its type: `a.corp` as a URI is not the DNS name `a.corp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alternative {
    Dns(String),
    Mail(String),
    Uri(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The common name, then DNS names, URIs and mail addresses, in the order of the certificate; at most 64.
    pub names: Vec<String>,
    /// Number of common names, which are the first entries of `names`. An authority need not have checked common names.
    pub common_names: usize,
    /// The subject alternative names with their types; at most 64.
    pub alternatives: Vec<Alternative>,
    /// Whether the certificate states client use (RFC 5280, section 4.2.1.12).
    pub is_for_clients: bool,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
}

impl Alternative {
    pub fn text(&self) -> &str {
        match self {
            Self::Dns(text) | Self::Mail(text) | Self::Uri(text) => text,
        }
    }
}

impl Facts {
    pub fn is_expired(&self, now: SystemTime) -> bool {
        now > self.not_after
    }

    /// The name for logs and accounts: the first alternative name, else `CN=` and the common name.
    pub fn identity(&self) -> String {
        match (self.names.get(self.common_names), self.names.first()) {
            (Some(name), _) => name.clone(),
            (None, Some(common)) => format!("CN={common}"),
            (None, None) => "(no name)".into(),
        }
    }

    pub fn lifetime(&self) -> Duration {
        self.not_after.duration_since(self.not_before).unwrap_or_default()
    }
}

/// Reads `certificate`; `None` if it is no X.509 certificate.
pub fn facts(certificate: &CertificateDer<'_>) -> Option<Facts> {
    let certificate = Certificate::from_der(certificate).ok()?.tbs_certificate;
    let subject = certificate.subject.0.iter().flat_map(|part| part.0.iter());
    let common: Vec<_> = subject.filter(|part| part.oid == CN).filter_map(|part| text(&part.value)).collect();
    let common_names = common.len().min(NAMES_MAX);
    let alternative = certificate.get::<SubjectAltName>().ok().flatten().map(|(_, names)| names.0).unwrap_or_default();
    let alternative = alternative.into_iter().filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(Alternative::Dns(name.to_string())),
        GeneralName::Rfc822Name(name) => Some(Alternative::Mail(name.to_string())),
        GeneralName::UniformResourceIdentifier(name) => Some(Alternative::Uri(name.to_string())),
        _ => None,
    });
    let alternatives: Vec<_> = alternative.take(NAMES_MAX).collect();
    let purposes = certificate.get::<ExtendedKeyUsage>().ok().flatten();
    let at = |time: x509_cert::time::Time| UNIX_EPOCH + time.to_unix_duration();
    Some(Facts {
        names: common
            .into_iter()
            .chain(alternatives.iter().map(|name| name.text().to_owned()))
            .take(NAMES_MAX)
            .collect(),
        common_names,
        alternatives,
        is_for_clients: purposes.is_some_and(|(_, purposes)| purposes.0.contains(&ID_KP_CLIENT_AUTH)),
        not_before: at(certificate.validity.not_before),
        not_after: at(certificate.validity.not_after),
    })
}

/// The earliest expiry of the certificates in `chain`, in seconds since 1970; `None` if no certificate can be read.
pub fn expiry(chain: &[CertificateDer<'_>]) -> Option<i64> {
    let first = chain.iter().filter_map(|certificate| facts(certificate)).map(|facts| facts.not_after).min()?;
    let since = first.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).ok()
}

/// The earliest expiry of `lists`; `None` if there is no list or no list has an expiry.
pub fn lists_end(lists: &[CertificateRevocationListDer<'_>]) -> Option<SystemTime> {
    let ends = lists.iter().filter_map(|list| CertificateList::from_der(list).ok()?.tbs_cert_list.next_update);
    ends.map(|time| UNIX_EPOCH + time.to_unix_duration()).min()
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
    use std::time::{Duration, SystemTime};

    use rustls_pki_types::CertificateDer;

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
        assert_eq!(
            (&*facts.alternatives, &*facts.identity()),
            (&[Alternative::Dns("api.local".into())][..], "api.local")
        );
        assert!(!facts.is_for_clients, "it does not say so");
        assert_eq!(facts.lifetime(), Duration::from_hours(366 * 24));
        assert_eq!(expiry(&[certificate.der().clone()]), Some(1_609_459_200));
        assert!(facts.is_expired(SystemTime::now()));
        assert!(!facts.is_expired(facts.not_after));
        assert_eq!(super::facts(&CertificateDer::from_slice(b"no certificate")), None);
    }
}
