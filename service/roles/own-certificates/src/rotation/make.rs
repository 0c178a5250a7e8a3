//! Makes authorities and certificates: P-256 keys, and lifetimes so short that no revocation is needed.
//!
//! This module owns the content of certificates. The module `step` decides when a certificate is made.

use std::time::{Duration, SystemTime};

use rand::RngExt as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SerialNumber,
};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use super::stored::{AUTHORITY, Pair};

/// Time between the start of a certificate's validity and its later creation, for clocks that are behind. The
/// certificate's lifetime is counted from its creation.
const BACKDATED: Duration = Duration::from_mins(10);

/// Why no certificate was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("the authority in the Secret has no common name")]
    Nameless,
    /// The new certificate cannot be parsed.
    #[error("a certificate that was made cannot be used")]
    Unusable,
}

/// A new authority that is valid until `ends`.
pub fn authority(now: SystemTime, ends: SystemTime) -> Result<Pair, Error> {
    // Two authorities are trusted side by side: each needs its own name, or callers would try the wrong one.
    let name = format!("{AUTHORITY}{:016x}", rand::rng().random::<u64>());
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let params = authority_params(&name, now, ends);
    finished(params.self_signed(&key)?.pem(), &key)
}

/// A certificate for the server `names`, signed by `authority`, valid until `ends`.
pub fn leaf(authority: &Pair, names: &[String], now: SystemTime, ends: SystemTime) -> Result<Pair, Error> {
    let name = authority.facts.names.first().filter(|_| authority.facts.common_names > 0).ok_or(Error::Nameless)?;
    let signer = KeyPair::from_pem(&authority.key)?;
    // A certificate contains only the name and the key of its authority.
    let issuer = Issuer::new(authority_params(name, now, ends), signer);
    let mut params = CertificateParams::new(names.to_vec())?;
    let called = names.last().ok_or(Error::Nameless)?;
    params.distinguished_name.push(DnType::CommonName, cut(called));
    params.serial_number = Some(serial());
    (params.not_before, params.not_after) = (at(now - BACKDATED), at(ends));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    finished(params.signed_by(&key, &issuer)?.pem(), &key)
}

fn authority_params(name: &str, now: SystemTime, ends: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(serial());
    (params.not_before, params.not_after) = (at(now - BACKDATED), at(ends));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn finished(certificate: String, key: &KeyPair) -> Result<Pair, Error> {
    Pair::read(certificate, Zeroizing::new(key.serialize_pem())).ok_or(Error::Unusable)
}

/// Cuts `name` to the 64 characters that a common name may have (RFC 5280). The full name is in the subject alternative
/// names of the certificate.
fn cut(name: &str) -> &str {
    name.get(..64).unwrap_or(name)
}

/// A random serial number: positive and at most 20 octets, as RFC 5280 demands.
fn serial() -> SerialNumber {
    SerialNumber::from(rand::rng().random::<u64>() >> 1 | 1)
}

/// The time, cut to whole seconds, which is the precision of X.509.
fn at(time: SystemTime) -> OffsetDateTime {
    let time = OffsetDateTime::from(time);
    time.replace_nanosecond(0).unwrap_or(time)
}
