//! The demands of a rule on an image. Plain data, made once by the policy that owns the rules and read by
//! [`verify`](crate::verify).

use std::collections::BTreeMap;

use crate::pattern::Pattern;

/// The proof that an image needs before it counts as verified.
#[derive(Debug, Clone)]
pub struct Requirement {
    pub roots: Roots,
    /// Number of distinct signers needed; 0 is refused as misconfigured. A root counts once, even if several signatures
    /// have its key. A key or certificate identity counts once, even if several roots accept it.
    pub threshold: usize,
    /// Roots by name that must be among the signers.
    pub required: Vec<String>,
    /// Keys and values that must be in the signed payload; it may have others. A bundle's statement has them as
    /// `annotations` of its subject.
    pub annotations: BTreeMap<String, String>,
    /// Whether the image itself must be signed. If off, attestations alone decide, and there must be some.
    pub image_signature: bool,
    /// Attestations that must exist, each signed by one of `roots`.
    pub attestations: Vec<AttestationRule>,
    /// Whether each signature must be in a transparency log of the root's authorities. It may be off for keys. For
    /// certificates it may be off only if timestamps are [`Timestamps::Required`]: a certificate lives minutes, so the
    /// time of signing must be proved.
    pub transparency_log: bool,
    /// Whether a certificate must carry a signed certificate timestamp of a CT log of its authority.
    pub certificate_timestamp: bool,
    /// The required RFC 3161 timestamps.
    pub timestamps: Timestamps,
    /// Whether the signed repository must be the requested one.
    pub reference: ReferenceCheck,
}

/// The roots whose signatures are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// Signatures of every root.
    All,
    /// Signatures of the roots with these names.
    Named(Vec<String>),
}

/// Demands on an attestation.
#[derive(Debug, Clone)]
pub struct AttestationRule {
    /// The required predicate type, for example `https://slsa.dev/provenance/v1`.
    pub predicate_type: String,
    /// Rules on fields of the predicate; all must hold.
    pub fields: Vec<FieldRule>,
}

/// A rule on one field of a predicate.
#[derive(Debug, Clone)]
pub struct FieldRule {
    /// JSON pointer (RFC 6901) into the predicate, for example `/buildDefinition/buildType`.
    pub pointer: String,
    /// The pattern of the text at the pointer. Numbers and booleans are compared in their JSON form; null, arrays and
    /// objects match nothing.
    pub value: Pattern,
}

/// The required RFC 3161 timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    /// None is required; a present one must be valid if it dates a certificate.
    IfPresent,
    /// Each signature needs one from a timestamp authority of the root's authorities.
    Required,
}

/// Whether the repository in the signed payload must be the image's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceCheck {
    /// Ignored, as in cosign: a mirrored image stays verified.
    Ignored,
    /// The name must be [`Subject::repository`](crate::Subject::repository). Payloads of legacy signatures have it.
    /// Statements of bundles do not, and are refused.
    Repository,
}

impl Default for Requirement {
    /// One signer of any root, in the transparency log, with a certificate timestamp if keyless.
    fn default() -> Self {
        Self {
            roots: Roots::All,
            threshold: 1,
            required: Vec::new(),
            annotations: BTreeMap::new(),
            image_signature: true,
            attestations: Vec::new(),
            transparency_log: true,
            certificate_timestamp: true,
            timestamps: Timestamps::IfPresent,
            reference: ReferenceCheck::Ignored,
        }
    }
}
