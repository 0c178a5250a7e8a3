//! Go's checks of a server certificate that is trusted directly: its dates, its purpose, and its critical extensions.

use std::time::Duration;

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, Error, ExtendedKeyPurpose};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::ext::pkix::ExtendedKeyUsage;

const EXTENDED_KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");
const ANY_PURPOSE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");
const SERVERS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
/// The critical extensions that crypto/x509 reads.
const KNOWN: [ObjectIdentifier; 11] = [
    EXTENDED_KEY_USAGE,
    ObjectIdentifier::new_unwrap("2.5.29.14"),         // subject key identifier
    ObjectIdentifier::new_unwrap("2.5.29.15"),         // key usage
    ObjectIdentifier::new_unwrap("2.5.29.17"),         // subject alternative name
    ObjectIdentifier::new_unwrap("2.5.29.19"),         // basic constraints
    ObjectIdentifier::new_unwrap("2.5.29.30"),         // name constraints
    ObjectIdentifier::new_unwrap("2.5.29.31"),         // CRL distribution points
    ObjectIdentifier::new_unwrap("2.5.29.32"),         // certificate policies
    ObjectIdentifier::new_unwrap("2.5.29.35"),         // authority key identifier
    ObjectIdentifier::new_unwrap("2.5.29.36"),         // policy constraints
    ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.1"), // authority information access
];

pub(crate) fn check(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let read =
        Certificate::from_der(certificate).map_err(|_| Error::from(CertificateError::BadEncoding))?.tbs_certificate;
    let at = |time: x509_cert::time::Time| {
        UnixTime::since_unix_epoch(Duration::from_secs(time.to_unix_duration().as_secs()))
    };
    let (not_before, not_after) = (at(read.validity.not_before), at(read.validity.not_after));
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    let extensions = read.extensions.unwrap_or_default();
    if extensions.iter().any(|extension| extension.critical && !KNOWN.contains(&extension.extn_id)) {
        return Err(CertificateError::UnhandledCriticalExtension.into());
    }
    let Some(usage) = extensions.iter().find(|extension| extension.extn_id == EXTENDED_KEY_USAGE) else {
        return Ok(());
    };
    let usage = ExtendedKeyUsage::from_der(usage.extn_value.as_bytes());
    let usage = usage.map_err(|_| Error::from(CertificateError::BadEncoding))?.0;
    if usage.is_empty() || usage.iter().any(|purpose| [ANY_PURPOSE, SERVERS].contains(purpose)) {
        return Ok(());
    }
    let presented =
        usage.iter().map(|purpose| ExtendedKeyPurpose::Other(purpose.arcs().map(|arc| arc as usize).collect()));
    Err(CertificateError::InvalidPurposeContext {
        required: ExtendedKeyPurpose::ServerAuth,
        presented: presented.collect(),
    }
    .into())
}
