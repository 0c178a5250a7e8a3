//! The demands of a policy rule on an image's signatures. The policy compiles these demands once, and
//! [`verify`](crate::verify) reads them.

use std::collections::BTreeMap;

use crate::pattern::Pattern;

/// The proofs that an image needs before it counts as verified.
#[derive(Debug, Clone)]
pub struct Requirement {
    pub roots: Roots,
    /// Number of different signers that are needed; 0 is refused as misconfigured. A root counts once, even if several
    /// signatures have its key. A key or certificate identity counts once, even if several roots accept it.
    pub threshold: usize,
    /// Names of roots that must be among the signers.
    pub required: Vec<String>,
    /// Keys and values that the signed payload must have; further keys are allowed. A bundle's statement has these keys
    /// as `annotations` of its subject.
    pub annotations: BTreeMap<String, String>,
    /// Whether the image itself must be signed. If false, only attestations count, and the rule must demand at least
    /// one attestation.
    pub image_signature: bool,
    /// Attestations that must exist, each signed by one of `roots`.
    pub attestations: Vec<AttestationRule>,
    /// Whether each signature must be in a transparency log of the root's authorities. If false, signatures by keys
    /// need no log entry. If false, signatures by certificates need no log entry only if timestamps are
    /// [`Timestamps::Required`]: a certificate is valid for minutes, so the signing time must be proved.
    pub transparency_log: bool,
    /// Whether each certificate must have a signed certificate timestamp of a CT log of its authority.
    pub certificate_timestamp: bool,
    pub timestamps: Timestamps,
    /// Whether the signature must name the image's repository.
    pub reference: ReferenceCheck,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// Signatures of every root.
    All,
    /// Signatures of the roots with these names.
    Named(Vec<String>),
}

#[derive(Debug, Clone)]
pub struct AttestationRule {
    /// The required predicate type, for example `https://slsa.dev/provenance/v1`.
    pub predicate_type: String,
    /// Rules for fields of the predicate; the predicate must fulfil all these rules.
    pub fields: Vec<FieldRule>,
}

/// A rule on one field of a predicate.
#[derive(Debug, Clone)]
pub struct FieldRule {
    /// JSON pointer (RFC 6901) into the predicate, for example `/buildDefinition/buildType`.
    pub pointer: String,
    /// The pattern that the text at `pointer` must match. Numbers and booleans are compared in their JSON form; null,
    /// arrays and objects match nothing.
    pub value: Pattern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    /// No timestamp is required. An existing timestamp must be valid if it dates a certificate.
    IfPresent,
    /// Each signature needs a timestamp of a timestamp authority among the root's authorities.
    Required,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceCheck {
    /// The repository is not compared, as in cosign, so that a mirrored image stays verified.
    Ignored,
    /// The repository must be [`Subject::repository`](crate::Subject::repository). Payloads of legacy signatures name
    /// the repository. Statements of bundles do not name the repository, so they are refused.
    Repository,
}

impl Default for Requirement {
    /// The default requirement: one signer of any root, with an entry in the transparency log; keyless signers need a
    /// certificate timestamp.
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
