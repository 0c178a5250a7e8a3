//! The signatures and attestations of an image, as bytes from a registry. The bytes of signatures and attestations are
//! not trusted before they are verified.

use crate::digest::Digest;
use crate::verdict::Rejected;

/// One object from a registry that may prove the signer of an image.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// A layer of the manifest at the tag `sha256-….sig`.
    Signature(Signature),
    /// A layer of the manifest at the tag `sha256-….att`.
    Attestation(Attestation),
    /// A sigstore bundle, from a referrer.
    Bundle(Bundle),
    /// An object that cannot be used; the verdict lists it as rejected.
    Unusable(Rejected),
}

/// A legacy signature: payload and annotations of one layer.
#[derive(Debug, Clone, Default)]
pub struct Signature {
    /// Where the signature was found, for messages.
    pub source: String,
    pub media_type: String,
    /// The bytes of the layer, which are the signed payload.
    pub payload: Vec<u8>,
    /// The annotation `dev.cosignproject.cosign/signature`, in base64.
    pub signature: String,
    pub companions: Companions,
}

/// A legacy attestation: DSSE envelope and annotations of one layer.
#[derive(Debug, Clone, Default)]
pub struct Attestation {
    /// Where the attestation was found, for messages.
    pub source: String,
    pub media_type: String,
    /// The bytes of the layer, which are the envelope as JSON.
    pub envelope: Vec<u8>,
    pub companions: Companions,
}

/// The annotations of a legacy signature's layer besides the signature.
#[derive(Debug, Clone, Default)]
pub struct Companions {
    /// The annotation `dev.sigstore.cosign/certificate`, as PEM.
    pub certificate: Option<String>,
    /// The annotation `dev.sigstore.cosign/chain`, as PEM: intermediate certificates and perhaps the root, which is not
    /// trusted.
    pub chain: Option<String>,
    /// The annotation `dev.sigstore.cosign/bundle`, as JSON: the promise of a transparency log to contain the
    /// signature.
    pub log_entry: Option<String>,
    /// The annotation `dev.sigstore.cosign/rfc3161timestamp`, as JSON.
    pub timestamp: Option<String>,
}

/// A sigstore bundle, and facts from the referrer's manifest.
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// Where the bundle was found, for messages.
    pub source: String,
    /// `artifactType` of the referrer's manifest.
    pub artifact_type: String,
    pub media_type: String,
    /// `subject` of the referrer's manifest.
    pub subject: Option<Digest>,
    /// The bytes of the layer, which are the bundle as JSON.
    pub json: Vec<u8>,
}

impl Evidence {
    /// The original bytes of the object, or the reason why the object cannot be used.
    pub fn into_bytes(self) -> Result<Vec<u8>, Rejected> {
        match self {
            Self::Signature(piece) => Ok(piece.payload),
            Self::Attestation(piece) => Ok(piece.envelope),
            Self::Bundle(piece) => Ok(piece.json),
            Self::Unusable(rejected) => Err(rejected),
        }
    }

    /// Where the object was found, for messages.
    pub fn source(&self) -> &str {
        match self {
            Self::Signature(piece) => &piece.source,
            Self::Attestation(piece) => &piece.source,
            Self::Bundle(piece) => &piece.source,
            Self::Unusable(piece) => &piece.source,
        }
    }
}
