//! Parses `trusted_root.json`, the file in which a sigstore instance lists its keys and certificates (sigstore's
//! protobuf `dev.sigstore.trustroot.v1.TrustedRoot`, as JSON).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::TrustError;
use crate::authority::{Authority, CERTIFIERS_MAX, Certifier, LOGS_MAX, Log, Period};
use crate::certificate::Certificate;
use crate::key::PublicKey;
use crate::time::UnixTime;

/// Largest `trusted_root.json`, in bytes; the file of the public instance has 7 kB.
const FILE_BYTES_MAX: usize = 1 << 20;
/// The supported media types. Files of other media types may use the same keys with another meaning.
const MEDIA_TYPES: [&str; 3] = [
    "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "application/vnd.dev.sigstore.trustedroot+json;version=0.2",
    "application/vnd.dev.sigstore.trustedroot.v0.2+json",
];

// Fields that are not named here do not affect trust.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    media_type: String,
    #[serde(default)]
    tlogs: Vec<RawLog>,
    #[serde(default)]
    certificate_authorities: Vec<RawAuthority>,
    #[serde(default)]
    ctlogs: Vec<RawLog>,
    #[serde(default)]
    timestamp_authorities: Vec<RawAuthority>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLog {
    public_key: RawKey,
    log_id: RawId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawKey {
    raw_bytes: String,
    #[serde(default)]
    valid_for: RawPeriod,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawId {
    key_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAuthority {
    cert_chain: RawChain,
    #[serde(default)]
    valid_for: RawPeriod,
}

#[derive(Deserialize)]
struct RawChain {
    certificates: Vec<RawCertificate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCertificate {
    raw_bytes: String,
}

#[derive(Deserialize, Default)]
struct RawPeriod {
    start: Option<String>,
    end: Option<String>,
}

/// Compiles the authority `name` from the text of the file.
pub(super) fn authority(name: &str, json: &str, place: &str) -> Result<Authority, TrustError> {
    if json.len() > FILE_BYTES_MAX {
        return Err(TrustError::new(place, format!("{} bytes, at most {FILE_BYTES_MAX} are read", json.len())));
    }
    let file: File = serde_json::from_str(json)
        .map_err(|error| TrustError::new(place, format!("not a trusted_root.json: {error}")))?;
    if !MEDIA_TYPES.contains(&file.media_type.as_str()) {
        let cause = format!("the mediaType `{}` is not one of a trusted_root.json that is known here", file.media_type);
        return Err(TrustError::new(place, cause));
    }
    for (what, count, max) in [
        ("tlogs", file.tlogs.len(), LOGS_MAX),
        ("ctlogs", file.ctlogs.len(), LOGS_MAX),
        ("certificateAuthorities", file.certificate_authorities.len(), CERTIFIERS_MAX),
        ("timestampAuthorities", file.timestamp_authorities.len(), CERTIFIERS_MAX),
    ] {
        if count > max {
            return Err(TrustError::new(format!("{place}.{what}"), format!("{count} entries, at most {max} are read")));
        }
    }
    let mut left_out = Vec::new();
    Ok(Authority {
        name: name.to_owned(),
        certifiers: certifiers(&file.certificate_authorities, &format!("{place}.certificateAuthorities"))?,
        logs: logs(&file.tlogs, &format!("{place}.tlogs"), &mut left_out)?,
        ct_logs: logs(&file.ctlogs, &format!("{place}.ctlogs"), &mut left_out)?,
        timestampers: certifiers(&file.timestamp_authorities, &format!("{place}.timestampAuthorities"))?,
        left_out,
    })
}

/// The logs whose keys are of a known kind. Logs with unknown kinds of keys are ignored with a note: they prove
/// nothing, and all other logs remain usable. For example, the file of sigstore's staging instance has a certificate
/// log with a PKCS#1 key.
fn logs(raw: &[RawLog], place: &str, left_out: &mut Vec<String>) -> Result<Vec<Log>, TrustError> {
    let mut logs: Vec<Log> = Vec::new();
    let mut last = None;
    for (number, raw) in raw.iter().enumerate() {
        let place = format!("{place}[{number}]");
        let der = bytes(&raw.public_key.raw_bytes, &format!("{place}.publicKey.rawBytes"))?;
        let id = bytes(&raw.log_id.key_id, &format!("{place}.logId.keyId"))?;
        if id.is_empty() {
            return Err(TrustError::new(format!("{place}.logId.keyId"), "an empty id"));
        }
        if logs.iter().any(|log| log.id == id) {
            return Err(TrustError::new(format!("{place}.logId.keyId"), "there are two logs of this id"));
        }
        let period = period(&raw.public_key.valid_for, &format!("{place}.publicKey.validFor"))?;
        match PublicKey::from_spki(&der) {
            Ok(key) => logs.push(Log { id, key, period }),
            Err(error) => {
                left_out.push(format!("{place}.publicKey: {error}"));
                last = Some(TrustError::new(format!("{place}.publicKey"), error.to_string()));
            }
        }
    }
    // If no log is left, nothing could be proved, and the error is more helpful now.
    match last {
        Some(error) if logs.is_empty() => Err(error),
        _ => Ok(logs),
    }
}

fn certifiers(raw: &[RawAuthority], place: &str) -> Result<Vec<Certifier>, TrustError> {
    let each = |(number, raw): (usize, &RawAuthority)| {
        let place = format!("{place}[{number}]");
        let mut chain = Vec::new();
        for (number, raw) in raw.cert_chain.certificates.iter().enumerate() {
            let place = format!("{place}.certChain.certificates[{number}]");
            let der = bytes(&raw.raw_bytes, &place)?;
            chain.push(Certificate::from_der(&der).map_err(|error| TrustError::new(&place, error.to_string()))?);
        }
        let period = period(&raw.valid_for, &format!("{place}.validFor"))?;
        Certifier::of(chain, period).map_err(|cause| TrustError::new(&place, cause))
    };
    raw.iter().enumerate().map(each).collect()
}

fn period(raw: &RawPeriod, place: &str) -> Result<Period, TrustError> {
    let time = |text: &Option<String>, name: &str| match text {
        None => Ok(None),
        Some(text) => match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Some(UnixTime(time.as_second()))),
            Err(_) => Err(TrustError::new(format!("{place}.{name}"), format!("`{text}` is not a time (RFC 3339)"))),
        },
    };
    let period = Period { start: time(&raw.start, "start")?, end: time(&raw.end, "end")? };
    match (period.start, period.end) {
        (None, _) => Err(TrustError::new(place, "it has no start: say since when it is to be believed")),
        (Some(start), Some(end)) if end < start => Err(TrustError::new(place, "it ends before it starts")),
        _ => Ok(period),
    }
}

fn bytes(text: &str, place: &str) -> Result<Vec<u8>, TrustError> {
    STANDARD.decode(text).map_err(|error| TrustError::new(place, format!("not base64: {error}")))
}
