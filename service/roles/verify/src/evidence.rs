//! The evidence for an image, as bytes from a registry. None of it is trusted.

use crate::digest::Digest;
use crate::verdict::Rejected;

/// One piece that may show the signer of an image.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// A layer of the manifest at the tag `sha256-….sig`.
    Signature(Signature),
    /// A layer of the manifest at the tag `sha256-….att`.
    Attestation(Attestation),
    /// A sigstore bundle, from a referrer.
    Bundle(Bundle),
    /// A piece that cannot be used; the verdict lists it among the rejected pieces.
    Unusable(Rejected),
}

/// A legacy signature: payload and annotations of one layer.
#[derive(Debug, Clone, Default)]
pub struct Signature {
    /// Its place, for messages.
    pub source: String,
    pub media_type: String,
    /// Bytes of the layer: the signed payload.
    pub payload: Vec<u8>,
    /// Annotation `dev.cosignproject.cosign/signature`: base64.
    pub signature: String,
    pub companions: Companions,
}

/// A legacy attestation: a DSSE envelope and annotations of one layer.
#[derive(Debug, Clone, Default)]
pub struct Attestation {
    /// Its place, for messages.
    pub source: String,
    pub media_type: String,
    /// Bytes of the layer: the envelope as JSON.
    pub envelope: Vec<u8>,
    pub companions: Companions,
}

/// The other annotations of a legacy signature's layer.
#[derive(Debug, Clone, Default)]
pub struct Companions {
    /// `dev.sigstore.cosign/certificate`: PEM.
    pub certificate: Option<String>,
    /// `dev.sigstore.cosign/chain`: PEM, intermediates and perhaps the root, which is not trusted.
    pub chain: Option<String>,
    /// `dev.sigstore.cosign/bundle`: the promise of a transparency log, as JSON.
    pub log_entry: Option<String>,
    /// `dev.sigstore.cosign/rfc3161timestamp`: JSON.
    pub timestamp: Option<String>,
}

/// A sigstore bundle and the facts from its referrer.
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// Its place, for messages.
    pub source: String,
    /// `artifactType` of the referrer's manifest.
    pub artifact_type: String,
    pub media_type: String,
    /// `subject` of the referrer's manifest.
    pub subject: Option<Digest>,
    /// Bytes of the layer: the bundle as JSON.
    pub json: Vec<u8>,
}

impl Evidence {
    /// The bytes of the piece again, or the reason why it could not be used.
    pub fn into_bytes(self) -> Result<Vec<u8>, Rejected> {
        match self {
            Self::Signature(piece) => Ok(piece.payload),
            Self::Attestation(piece) => Ok(piece.envelope),
            Self::Bundle(piece) => Ok(piece.json),
            Self::Unusable(rejected) => Err(rejected),
        }
    }

    /// Its place, for messages.
    pub fn source(&self) -> &str {
        match self {
            Self::Signature(piece) => &piece.source,
            Self::Attestation(piece) => &piece.source,
            Self::Bundle(piece) => &piece.source,
            Self::Unusable(piece) => &piece.source,
        }
    }
}
