//! Certificate transparency: checks the signed timestamps (RFC 6962) in a certificate; each is a log's promise to
//! publish the certificate.

use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::SignedCertificateTimestampList;
use x509_cert::ext::pkix::sct::{SignedCertificateTimestamp, Version};

use crate::authority::Log;
use crate::certificate::Certificate;
use crate::key::PublicKey;
use crate::time::UnixTime;

const EXTENSION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.11129.2.4.2");
/// Maximum number of timestamps of one certificate that are checked.
const TIMESTAMPS_MAX: usize = 8;
const MILLIS: u64 = 1000;

/// Checks that one of `logs` signed a timestamp for `leaf`, whose issuer has the key `issuer`. An invalid timestamp of
/// a known log makes the certificate invalid; timestamps of unknown logs are ignored.
pub(crate) fn check<'a>(
    leaf: &Certificate,
    issuer: &PublicKey,
    logs: &(impl Iterator<Item = &'a Log> + Clone),
) -> Result<(), String> {
    let tbs = &leaf.parsed.tbs_certificate;
    let all = tbs.extensions.as_deref().unwrap_or_default();
    let mut lists = all.iter().filter(|extension| extension.extn_id == EXTENSION);
    let (Some(list), None) = (lists.next(), lists.next()) else {
        return Err("its certificate carries no signed certificate timestamp".to_owned());
    };
    let malformed = || "the signed certificate timestamps of its certificate cannot be read".to_owned();
    let list = SignedCertificateTimestampList::from_der(list.extn_value.as_bytes()).map_err(|_| malformed())?;
    let timestamps = list.parse_timestamps().map_err(|_| malformed())?;
    let certificate = without_timestamps(leaf)?;
    let mut is_logged = false;
    for timestamp in timestamps.iter().take(TIMESTAMPS_MAX) {
        let timestamp = timestamp.parse_timestamp().map_err(|_| malformed())?;
        let id: &[u8] = &timestamp.log_id.key_id;
        for log in logs.clone().filter(|log| log.id == id) {
            let signature = timestamp.signature.signature.as_slice();
            if !log.key.verifies(&signed(&timestamp, issuer, &certificate)?, signature) {
                return Err("a certificate log that is trusted did not sign for its certificate".to_owned());
            }
            let time = UnixTime(i64::try_from(timestamp.timestamp / MILLIS).map_err(|_| malformed())?);
            if !log.period.holds(time) {
                return Err(format!("its certificate log is not to be believed at {time}"));
            }
            is_logged = true;
        }
    }
    if is_logged { Ok(()) } else { Err("its certificate is in no certificate log that is trusted".to_owned()) }
}

/// The certificate's content as the certificate log received it, without signed timestamps (RFC 6962, section 3.2).
fn without_timestamps(leaf: &Certificate) -> Result<Vec<u8>, String> {
    let malformed = |_| "its certificate cannot be encoded again".to_owned();
    let mut tbs = leaf.parsed.tbs_certificate.clone();
    // The signature covers bytes: an encoding that we cannot repeat exactly is one that we do not understand.
    if leaf.parsed.to_der().map_err(malformed)? != leaf.der.as_ref() {
        return Err("its certificate is not encoded as DER wants it".to_owned());
    }
    if let Some(extensions) = &mut tbs.extensions {
        extensions.retain(|extension| extension.extn_id != EXTENSION);
    }
    tbs.to_der().map_err(malformed)
}

/// The bytes that a log signs for a precertificate (RFC 6962, section 3.2: `digitally-signed struct`, `precert_entry`).
fn signed(timestamp: &SignedCertificateTimestamp, issuer: &PublicKey, certificate: &[u8]) -> Result<Vec<u8>, String> {
    let too_long = || "its certificate is too long".to_owned();
    if timestamp.version != Version::V1 {
        return Err("a signed certificate timestamp of a version that is not known here".to_owned());
    }
    let length = u32::try_from(certificate.len()).ok().filter(|length| *length < 1 << 24).ok_or_else(too_long)?;
    let extensions = timestamp.extensions.as_slice();
    let extensions_length = u16::try_from(extensions.len()).map_err(|_| too_long())?;
    let mut out = Vec::with_capacity(certificate.len() + 64);
    out.extend([0, 0]); // version 1, certificate timestamp
    out.extend(timestamp.timestamp.to_be_bytes());
    out.extend([0, 1]); // a certificate that is to be issued
    out.extend(issuer.fingerprint().as_bytes());
    out.extend(&length.to_be_bytes()[1..]);
    out.extend(certificate);
    out.extend(extensions_length.to_be_bytes());
    out.extend(extensions);
    Ok(out)
}
