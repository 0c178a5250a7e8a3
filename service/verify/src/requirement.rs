//! Demands of a rule on an image. Plain data; the policy that owns the rules makes it once, [`verify`](crate::verify) reads it.

use std::collections::BTreeMap;

use crate::pattern::Pattern;

/// The proof that an image needs before it counts as verified.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// The roots whose signatures count.
    pub roots: Roots,
    /// How many distinct signers are needed; 0 is refused as misconfigured. A root counts once however many signatures carry its
    /// key, and so does a key or certificate identity however many roots accept it.
    pub threshold: usize,
    /// Roots by name that must be among the signers.
    pub required: Vec<String>,
    /// Key and value that must be in the payload that was signed, beside others. A bundle's statement carries them as
    /// `annotations` of its subject.
    pub annotations: BTreeMap<String, String>,
    /// Whether the image itself must be signed. Off: attestations alone decide, and there must be some.
    pub image_signature: bool,
    /// Attestations that must be there, each signed by one of `roots`.
    pub attestations: Vec<AttestationRule>,
    /// Whether each signature must be in a transparency log of the root's authorities. May be off for keys, and for certificates
    /// only when timestamps are [`Timestamps::Required`]: something must say when a certificate that lived minutes signed.
    pub transparency_log: bool,
    /// Whether a certificate must carry a signed certificate timestamp of a CT log of its authority.
    pub certificate_timestamp: bool,
    /// The RFC 3161 timestamps that are needed.
    pub timestamps: Timestamps,
    /// Whether the repository that was signed must be the one that is asked for.
    pub reference: ReferenceCheck,
}

/// The roots whose signatures count.
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
    /// The predicate type that it must have, for example `https://slsa.dev/provenance/v1`.
    pub predicate_type: String,
    /// Rules on fields of the predicate; all must hold.
    pub fields: Vec<FieldRule>,
}

/// A rule on one field of a predicate.
#[derive(Debug, Clone)]
pub struct FieldRule {
    /// JSON pointer (RFC 6901) into the predicate, for example `/buildDefinition/buildType`.
    pub pointer: String,
    /// The pattern of the text at the pointer. Numbers and booleans are compared as JSON writes them; null, arrays and objects
    /// match nothing.
    pub value: Pattern,
}

/// The RFC 3161 timestamps that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    /// One that is there must be right when a certificate's time hangs on it; none is needed.
    IfPresent,
    /// Each signature must have one of a timestamp authority that the root's authorities list.
    Required,
}

/// Whether the repository in the signed payload must be the image's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceCheck {
    /// Not looked at, as cosign does it: a mirrored image stays verified.
    Ignored,
    /// The name must be [`Subject::repository`](crate::Subject::repository). Payloads of legacy signatures name it; statements of
    /// bundles do not, and are refused then.
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
