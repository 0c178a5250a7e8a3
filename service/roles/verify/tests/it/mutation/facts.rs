//! Reads the facts in a signature that a requirement binds, without code of the verifier.

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{NO_PAD, STANDARD_NO_PAD};
use serde_json::Value;
use service_verify::{Companions, Digest, Evidence, Requirement, Timestamps};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    signed: (String, Vec<u8>),
    signature: Vec<u8>,
    certificate: Option<Vec<u8>>,
    entry: Option<Entry>,
    stamped: Vec<Vec<u8>>,
    refers_to: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    log: Vec<u8>,
    index: String,
    time: Option<String>,
    body: Vec<u8>,
}

impl Facts {
    /// Reads the facts in `evidence`; `None` if even this tolerant reader cannot parse the signature.
    pub fn read(evidence: &Evidence, requirement: &Requirement, is_keyless: bool) -> Option<Self> {
        let mut facts = match evidence {
            Evidence::Signature(piece) => Self {
                signed: (String::new(), piece.payload.clone()),
                signature: bytes(&Value::from(piece.signature.as_str()))?,
                refers_to: None,
                ..Self::of_companions(&piece.companions)?
            },
            Evidence::Attestation(piece) => {
                let envelope: Value = serde_json::from_slice(&piece.envelope).ok()?;
                Self { refers_to: None, ..Self::of_companions(&piece.companions)?.enveloped(&envelope)? }
            }
            Evidence::Bundle(piece) => {
                let bundle: Value = serde_json::from_slice(&piece.json).ok()?;
                let facts = Self::of_material(&bundle["verificationMaterial"])?.enveloped(&bundle["dsseEnvelope"])?;
                Self { refers_to: piece.subject, ..facts }
            }
            Evidence::Unusable(_) => return None,
        };
        // Only demanded facts are bound.
        if !is_keyless {
            facts.certificate = None;
        }
        let is_dated = facts.entry.as_ref().is_some_and(|entry| entry.time.is_some());
        if !requirement.transparency_log {
            facts.entry = None;
        }
        if requirement.timestamps != Timestamps::Required && (is_dated || !is_keyless) {
            facts.stamped.clear();
        }
        Some(facts)
    }

    /// Whether all facts equal the facts of `genuine`. If a signature has several timestamps, one equal timestamp is
    /// enough. The promise of a log may be missing.
    pub fn are_as(&self, genuine: &Self) -> bool {
        let is_undated = self.is_undated_beside(genuine);
        let without = |facts: &Self| {
            let entry = facts.entry.clone();
            let entry = entry.map(|entry| Entry { time: entry.time.filter(|_| !is_undated), ..entry });
            Self { stamped: Vec::new(), entry, ..facts.clone() }
        };
        let is_stamped = genuine.stamped.is_empty() || genuine.stamped.iter().any(|one| self.stamped.contains(one));
        is_stamped && without(self) == without(genuine)
    }

    /// Whether `genuine` states a time and the changed signature does not.
    pub fn is_undated_beside(&self, genuine: &Self) -> bool {
        let is_dated = |facts: &Self| facts.entry.as_ref().map(|entry| entry.time.is_some());
        is_dated(self) == Some(false) && is_dated(genuine) == Some(true)
    }

    fn enveloped(self, envelope: &Value) -> Option<Self> {
        let kind = envelope["payloadType"].as_str()?.to_owned();
        let signature = bytes(&envelope["signatures"][0]["sig"])?;
        Some(Self { signed: (kind, bytes(&envelope["payload"])?), signature, ..self })
    }

    fn of_companions(companions: &Companions) -> Option<Self> {
        let entry = companions.log_entry.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let entry = entry.map(|raw| {
            let payload = &raw["Payload"];
            Some(Entry {
                log: hex::decode(payload["logID"].as_str()?).ok()?,
                index: number(&payload["logIndex"]),
                time: Some(number(&payload["integratedTime"])),
                body: bytes(&payload["body"])?,
            })
        });
        let stamp = companions.timestamp.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let stamp = stamp.and_then(|raw| bytes(&raw["SignedRFC3161Timestamp"]));
        Some(Self {
            signed: (String::new(), Vec::new()),
            signature: Vec::new(),
            certificate: companions.certificate.as_deref().and_then(first_block),
            entry: match entry {
                Some(entry) => Some(entry?),
                None => None,
            },
            stamped: stamp.and_then(|stamp| stamped(&stamp)).into_iter().collect(),
            refers_to: None,
        })
    }

    fn of_material(material: &Value) -> Option<Self> {
        let raw = &material["tlogEntries"][0];
        let is_promised = raw["inclusionPromise"].is_object();
        let kind = &raw["kindVersion"];
        let is_rekor_two = kind["version"] == "0.0.2" && kind["kind"] != "intoto";
        let entry = raw.is_object().then(|| {
            Some(Entry {
                log: bytes(&raw["logId"]["keyId"])?,
                // Without a promise the proof gives the entry's index; for Rekor 2 it refers to the index next to it.
                index: number(if is_promised || is_rekor_two {
                    &raw["logIndex"]
                } else {
                    &raw["inclusionProof"]["logIndex"]
                }),
                time: is_promised.then(|| number(&raw["integratedTime"])),
                body: bytes(&raw["canonicalizedBody"])?,
            })
        });
        let chain = &material["x509CertificateChain"]["certificates"][0]["rawBytes"];
        let stamps = material["timestampVerificationData"]["rfc3161Timestamps"].as_array();
        let stamps = stamps.into_iter().flatten().filter_map(|stamp| bytes(&stamp["signedTimestamp"]));
        Some(Self {
            signed: (String::new(), Vec::new()),
            signature: Vec::new(),
            certificate: bytes(&material["certificate"]["rawBytes"]).or_else(|| bytes(chain)),
            entry: match entry {
                Some(entry) => Some(entry?),
                None => None,
            },
            stamped: stamps.filter_map(|stamp| stamped(&stamp)).collect(),
            refers_to: None,
        })
    }
}

/// A number that is written as text or as a number; an absent number is 0, as in protobuf.
fn number(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim_start_matches('0').to_owned(),
        Value::Number(number) if number.as_u64() == Some(0) => String::new(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// Decodes base64 and accepts as many variants as possible.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    let config = NO_PAD.with_decode_allow_trailing_bits(true);
    let lenient = GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    lenient.decode(value.as_str()?.trim_end_matches('=')).ok()
}

/// The content of the first PEM block in a text with certificates.
fn first_block(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----")?;
    let (block, _) = rest.split_once("-----END CERTIFICATE-----")?;
    let text: String = block.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    STANDARD_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

/// The content of a timestamp token (hash, serial number and time) without its signatures.
fn stamped(token: &[u8]) -> Option<Vec<u8>> {
    const TST_INFO: &[u8] = &[6, 11, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 0x10, 1, 4];
    let at = token.windows(TST_INFO.len()).position(|window| window == TST_INFO)? + TST_INFO.len();
    // An explicit tag, an octet string and a sequence, each with its length.
    let mut rest = token.get(at..)?;
    for _ in 0..2 {
        rest = content(rest)?;
    }
    Some(rest.to_vec())
}

/// The content of the first DER element in `der`.
fn content(der: &[u8]) -> Option<&[u8]> {
    let (length, head) = match *der.get(1)? {
        short @ 0..=0x7f => (usize::from(short), 2),
        0x81 => (usize::from(*der.get(2)?), 3),
        0x82 => (usize::from(*der.get(2)?) << 8 | usize::from(*der.get(3)?), 4),
        _ => return None,
    };
    der.get(head..head + length)
}
