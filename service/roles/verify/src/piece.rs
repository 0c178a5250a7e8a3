//! Parses one signature or attestation of any format into a common struct.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use serde::Deserialize;

use crate::bundle;
use crate::certificate::Certificate;
use crate::claim::{Claim, SIGN_TYPE, shown};
use crate::digest::Subject;
use crate::envelope::RawEnvelope;
use crate::evidence::{Attestation, Bundle, Companions, Signature};
use crate::json;
use crate::log::Entry;
use crate::oci::{ENVELOPE_BYTES_MAX, ENVELOPE_TYPE, PAYLOAD_BYTES_MAX, PAYLOAD_TYPE, is_bundle};
use crate::verdict::{Class, EvidenceKind};

/// A signature or attestation of any format, with the fields that are checked.
#[derive(Debug)]
pub(crate) struct Piece<'e> {
    pub(crate) kind: EvidenceKind,
    pub(crate) message: Vec<u8>,
    /// The position of the envelope's payload in the signed message, if an envelope was signed.
    payload_at: Option<usize>,
    /// The envelope as the registry stores it, if it is not in a bundle.
    pub(crate) envelope: Option<&'e [u8]>,
    pub(crate) signature: Vec<u8>,
    pub(crate) claim: Claim,
    pub(crate) certificate: Option<Certificate>,
    /// Intermediate certificates that were stored with the signature.
    pub(crate) further: Vec<CertificateDer<'static>>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) timestamps: Vec<Vec<u8>>,
}

/// Why a signature is refused.
pub(crate) type Refusal = (Class, String);

#[derive(Deserialize)]
struct RawTimestamp {
    #[serde(rename = "SignedRFC3161Timestamp")]
    response: String,
}

impl<'e> Piece<'e> {
    /// Parses a layer of a `.sig` manifest.
    pub(crate) fn signature(raw: &Signature) -> Result<Self, Refusal> {
        expect_type("layer", &raw.media_type, raw.media_type == PAYLOAD_TYPE)?;
        expect_size(&raw.payload, PAYLOAD_BYTES_MAX)?;
        let signature = STANDARD.decode(&raw.signature).map_err(|_| invalid("its signature is not base64"))?;
        if signature.is_empty() {
            return Err(invalid("its layer carries no signature"));
        }
        let claim = Claim::payload(&raw.payload).map_err(invalid)?;
        let companions = Opened::of(&raw.companions).map_err(invalid)?;
        Ok(Self {
            kind: EvidenceKind::Signature,
            message: raw.payload.clone(),
            payload_at: None,
            envelope: None,
            signature,
            claim,
            certificate: companions.certificate,
            further: companions.further,
            entries: companions.entries,
            timestamps: companions.timestamps,
        })
    }

    /// Parses a layer of an `.att` manifest.
    pub(crate) fn attestation(raw: &'e Attestation) -> Result<Self, Refusal> {
        expect_type("layer", &raw.media_type, raw.media_type == ENVELOPE_TYPE)?;
        expect_size(&raw.envelope, ENVELOPE_BYTES_MAX)?;
        let envelope: RawEnvelope<'_> =
            json::read(&raw.envelope).map_err(|error| invalid(format!("it is no envelope of a statement: {error}")))?;
        let companions = Opened::of(&raw.companions).map_err(invalid)?;
        Self::enveloped(&envelope, EvidenceKind::Attestation, companions, Some(&raw.envelope))
    }

    /// Parses a bundle whose manifest refers to `subject`.
    pub(crate) fn bundle(raw: &Bundle, subject: &Subject) -> Result<Self, Refusal> {
        expect_type("artifact", &raw.artifact_type, is_bundle(&raw.artifact_type))?;
        expect_type("layer", &raw.media_type, raw.media_type == raw.artifact_type)?;
        expect_size(&raw.json, ENVELOPE_BYTES_MAX)?;
        match raw.subject {
            Some(refers) if refers == subject.digest => {}
            Some(refers) => {
                return Err((Class::Mismatch, format!("it refers to {refers}, not to {}", subject.digest)));
            }
            None => return Err(invalid("its manifest refers to no image (subject)")),
        }
        let opened = bundle::open(&raw.json).map_err(invalid)?;
        let companions = Opened {
            certificate: opened.certificate,
            further: opened.further,
            entries: opened.entries,
            timestamps: opened.timestamps,
        };
        let mut piece = Self::enveloped(&opened.envelope, EvidenceKind::BundleAttestation, companions, None)?;
        if piece.claim.predicate_type() == Some(SIGN_TYPE) {
            piece.kind = EvidenceKind::Bundle;
        }
        Ok(piece)
    }

    /// The bytes that a timestamp covers: cosign 2 stamps the whole envelope, other tools stamp the signature.
    pub(crate) fn timestamped(&self) -> &[u8] {
        self.envelope.unwrap_or(&self.signature)
    }

    /// The payload of the envelope, if an envelope was signed.
    pub(crate) fn envelope_payload(&self) -> Option<&[u8]> {
        self.payload_at.map(|at| &self.message[at..])
    }

    fn enveloped(
        raw: &RawEnvelope<'_>,
        kind: EvidenceKind,
        companions: Opened,
        envelope: Option<&'e [u8]>,
    ) -> Result<Self, Refusal> {
        let opened = raw.open().map_err(invalid)?;
        let claim = Claim::statement(&opened.signed[opened.payload_at..]).map_err(invalid)?;
        Ok(Self {
            kind,
            message: opened.signed,
            payload_at: Some(opened.payload_at),
            envelope,
            signature: opened.signature,
            claim,
            certificate: companions.certificate,
            further: companions.further,
            entries: companions.entries,
            timestamps: companions.timestamps,
        })
    }
}

/// The parsed annotations of a signature.
#[derive(Default)]
struct Opened {
    certificate: Option<Certificate>,
    further: Vec<CertificateDer<'static>>,
    entries: Vec<Entry>,
    timestamps: Vec<Vec<u8>>,
}

impl Opened {
    fn of(raw: &Companions) -> Result<Self, String> {
        let mut opened = Self::default();
        if let Some(pem) = &raw.certificate {
            let (first, rest) = Certificate::from_pem(pem).map_err(|error| format!("its certificate: {error}"))?;
            opened.certificate = Some(first);
            opened.further.extend(rest.into_iter().map(|certificate| certificate.der));
        }
        if let Some(pem) = &raw.chain {
            let chain = Certificate::all_from_pem(pem).map_err(|error| format!("its certificate chain: {error}"))?;
            opened.further.extend(chain.into_iter().map(|certificate| certificate.der));
        }
        if let Some(text) = &raw.log_entry {
            opened.entries.push(Entry::from_annotation(text)?);
        }
        if let Some(text) = &raw.timestamp {
            let raw: RawTimestamp =
                serde_json::from_str(text).map_err(|error| format!("its timestamp cannot be read: {error}"))?;
            opened.timestamps.push(STANDARD.decode(raw.response).map_err(|_| "its timestamp is not base64")?);
        }
        Ok(opened)
    }
}

fn expect_type(what: &str, media_type: &str, is_known: bool) -> Result<(), Refusal> {
    if is_known {
        return Ok(());
    }
    Err(invalid(format!("its {what} has the type `{}`, which is not one of a signature", shown(media_type))))
}

fn expect_size(bytes: &[u8], max: u64) -> Result<(), Refusal> {
    if bytes.len() as u64 <= max {
        return Ok(());
    }
    Err(invalid(format!("it has {} bytes, at most {max} are read", bytes.len())))
}

fn invalid(cause: impl Into<String>) -> Refusal {
    (Class::Invalid, cause.into())
}
