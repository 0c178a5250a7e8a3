//! Parses sigstore bundles (sigstore's protobuf `dev.sigstore.bundle.v1.Bundle`, as JSON).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use serde::{Deserialize, Deserializer};

use crate::certificate::Certificate;
use crate::entry::KindVersion;
use crate::envelope::RawEnvelope;
use crate::json::{self, Few};
use crate::log::Entry;
use crate::merkle::{PATH_MAX, Proof};
use crate::time::UnixTime;

/// Maximum number of log entries of one bundle; bundles of all supported versions have one entry.
const ENTRIES_MAX: usize = 1;
/// Maximum number of timestamps of one bundle that are checked.
const TIMESTAMPS_MAX: usize = 4;
/// Maximum number of certificates of a chain in a bundle.
const CHAIN_MAX: usize = 10;
/// Maximum number of items of any list in a bundle; a longer list is refused.
const LIST_MAX: usize = 32;
/// The supported versions of bundles.
const FORMS: [Form; 5] = [
    Form { media_type: "application/vnd.dev.sigstore.bundle+json;version=0.1", needs: Needs::Promise, has_chain: true },
    Form { media_type: "application/vnd.dev.sigstore.bundle+json;version=0.2", needs: Needs::Proof, has_chain: true },
    Form { media_type: "application/vnd.dev.sigstore.bundle+json;version=0.3", needs: Needs::Proof, has_chain: false },
    Form { media_type: "application/vnd.dev.sigstore.bundle.v0.3+json", needs: Needs::Proof, has_chain: false },
    Form { media_type: "application/vnd.dev.sigstore.bundle.v0.3.1+json", needs: Needs::Proof, has_chain: false },
];

/// The fields that bundles of one version must have and may have (sigstore's protobuf `Bundle`).
struct Form {
    media_type: &'static str,
    needs: Needs,
    /// Whether the version allows a chain of certificates; from version 0.3 on, a bundle has one certificate.
    has_chain: bool,
}

/// The proof that a log entry needs.
#[derive(Clone, Copy)]
enum Needs {
    Promise,
    Proof,
}

/// The parsed contents of a bundle, which are not trusted.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    pub(crate) envelope: RawEnvelope<'a>,
    pub(crate) certificate: Option<Certificate>,
    pub(crate) further: Vec<CertificateDer<'static>>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) timestamps: Vec<Vec<u8>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    media_type: String,
    verification_material: Material,
    #[serde(borrow)]
    dsse_envelope: Option<RawEnvelope<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    certificate: Option<RawBytes>,
    x509_certificate_chain: Option<Chain>,
    public_key: Option<KeyHint>,
    #[serde(default)]
    tlog_entries: Few<RawEntry, LIST_MAX>,
    #[serde(default)]
    timestamp_verification_data: Option<Timestamps>,
}

/// The hint that identifies the signer's key. The hint must be text, but the verifier does not use it.
#[derive(Deserialize)]
struct KeyHint {
    #[serde(default, rename = "hint")]
    _hint: Option<String>,
}

#[derive(Deserialize)]
struct Chain {
    certificates: Few<RawBytes, LIST_MAX>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBytes {
    #[serde(deserialize_with = "bytes")]
    raw_bytes: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timestamps {
    #[serde(default)]
    rfc3161_timestamps: Few<Timestamp, LIST_MAX>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timestamp {
    #[serde(deserialize_with = "bytes")]
    signed_timestamp: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEntry {
    #[serde(default)]
    log_index: Number,
    log_id: LogId,
    kind_version: KindVersion,
    #[serde(default)]
    integrated_time: Number,
    inclusion_promise: Option<Promise>,
    inclusion_proof: Option<RawProof>,
    #[serde(deserialize_with = "bytes")]
    canonicalized_body: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogId {
    #[serde(deserialize_with = "bytes")]
    key_id: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Promise {
    #[serde(deserialize_with = "bytes")]
    signed_entry_timestamp: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawProof {
    #[serde(default)]
    log_index: Number,
    #[serde(deserialize_with = "bytes")]
    root_hash: Vec<u8>,
    tree_size: Number,
    #[serde(default)]
    hashes: Few<String, { PATH_MAX + 1 }>,
    checkpoint: Note,
}

#[derive(Deserialize)]
struct Note {
    envelope: String,
}

/// A 64-bit number, which protobuf's JSON writes as text; 0 is left out.
#[derive(Clone, Copy, Default)]
struct Number(u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl serde::de::Visitor<'_> for Either {
            type Value = Number;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a number that is not negative")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Number, E> {
                Ok(Number(value))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Number, E> {
                if !text.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(E::custom("not a number"));
                }
                text.parse().map(Number).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    STANDARD.decode(text.as_bytes()).map_err(serde::de::Error::custom)
}

pub(crate) fn open(json: &[u8]) -> Result<Opened<'_>, String> {
    let raw: Raw<'_> = json::read(json).map_err(|error| format!("it is no sigstore bundle: {error}"))?;
    let form = FORMS.iter().find(|form| form.media_type == raw.media_type);
    let form = form.ok_or("it is a bundle of a form that is not read here")?;
    let envelope = raw.dsse_envelope.ok_or("it is a bundle without an envelope: images are signed by statements")?;
    let material = raw.verification_material;
    let (certificate, further) = match (material.certificate, material.x509_certificate_chain, material.public_key) {
        (None, None, Some(_)) => (None, Vec::new()),
        (Some(one), None, None) => (Some(certificate(&one)?), Vec::new()),
        (None, Some(_), None) if !form.has_chain => {
            return Err("it has a certificate chain, which this form of a bundle has not".to_owned());
        }
        (None, Some(chain), None) => {
            let (first, rest) = chain.certificates.split_first().ok_or("its certificate chain is empty")?;
            let rest = rest.iter().take(CHAIN_MAX).map(|one| CertificateDer::from(one.raw_bytes.clone()));
            (Some(certificate(first)?), rest.collect())
        }
        _ => return Err("it must have one of key, certificate and certificate chain".to_owned()),
    };
    if material.tlog_entries.len() > ENTRIES_MAX {
        return Err(format!("it has {} log entries, at most {ENTRIES_MAX} is read", material.tlog_entries.len()));
    }
    let entries = material.tlog_entries.into_iter().map(|raw| entry(raw, form.needs)).collect::<Result<_, _>>()?;
    let timestamps = material.timestamp_verification_data.map(|data| data.rfc3161_timestamps).unwrap_or_default();
    if timestamps.len() > TIMESTAMPS_MAX {
        return Err(format!("it has {} timestamps, at most {TIMESTAMPS_MAX} are read", timestamps.len()));
    }
    let timestamps = timestamps.into_iter().map(|one| one.signed_timestamp).collect();
    Ok(Opened { envelope, certificate, further, entries, timestamps })
}

fn certificate(raw: &RawBytes) -> Result<Certificate, String> {
    Certificate::from_der(&raw.raw_bytes).map_err(|error| format!("its certificate: {error}"))
}

fn entry(raw: RawEntry, needs: Needs) -> Result<Entry, String> {
    match needs {
        Needs::Proof if raw.inclusion_proof.is_none() => {
            return Err("its log entry has no inclusion proof, which this form of a bundle needs".to_owned());
        }
        Needs::Promise if raw.inclusion_promise.is_none() => {
            return Err("its log entry has no promise, which this form of a bundle needs".to_owned());
        }
        Needs::Promise | Needs::Proof => {}
    }
    // Rekor 2 has one index; the one in its proof repeats it and must be ignored (rekor-tiles, CLIENTS.md). Rekor 1 has
    // two: next to the proof over all its trees, and in the proof that of the tree.
    let is_rekor_two = raw.kind_version.is_rekor_two();
    let proven = |proof: &RawProof| if is_rekor_two { raw.log_index.0 } else { proof.log_index.0 };
    // Nothing was logged in 1970: protobuf's JSON writes an absent value as 0.
    let integrated = i64::try_from(raw.integrated_time.0).ok().filter(|seconds| *seconds > 0).map(UnixTime);
    Ok(Entry {
        log_id: raw.log_id.key_id,
        index: raw.log_index.0,
        integrated,
        body: raw.canonicalized_body,
        stated: Some(raw.kind_version),
        promise: raw.inclusion_promise.map(|promise| promise.signed_entry_timestamp),
        proof: raw.inclusion_proof.map(|raw| proof(proven(&raw), raw)).transpose()?,
    })
}

fn proof(index: u64, raw: RawProof) -> Result<Proof, String> {
    let malformed = || "the inclusion proof of its log entry cannot be read".to_owned();
    let hash = |bytes: Vec<u8>| <[u8; 32]>::try_from(bytes).map_err(|_| malformed());
    if raw.hashes.len() > PATH_MAX {
        return Err(malformed());
    }
    let path = raw.hashes.iter().map(|text| hash(STANDARD.decode(text).map_err(|_| malformed())?));
    Ok(Proof {
        index,
        size: raw.tree_size.0,
        root: hash(raw.root_hash)?,
        path: path.collect::<Result<_, _>>()?,
        checkpoint: raw.checkpoint.envelope,
    })
}
