//! The verdict of a verification.

use std::fmt;

use crate::time::UnixTime;

/// All results of a verification, for an answer, an audit line and a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the requirement is met.
    pub outcome: Outcome,
    /// Every signature that counts: by root, then in the order of the evidence. The same root or identity may occur
    /// more than once; the threshold counts it once.
    pub signers: Vec<Signer>,
    /// Every piece that does not count, in the order of the evidence, with its cause.
    pub rejected: Vec<Rejected>,
}

/// Whether an image is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The requirement is met.
    Verified,
    /// The image is not verified.
    Refused {
        class: Class,
        /// The reason, for the person who deploys the image.
        cause: String,
    },
}

/// The kinds of failure that verification can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// No signature that could count, in any format.
    Unsigned,
    /// A signature is not valid, or there are not enough signers.
    Invalid,
    /// A valid signature is of another image.
    Mismatch,
    /// The requirement or the trust roots cannot work.
    Misconfigured,
}

/// A signature that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// The trust root that accepts it.
    pub root: String,
    pub identity: Identity,
    /// The form of the signature.
    pub kind: EvidenceKind,
    /// Predicate type, if it is an attestation.
    pub predicate_type: Option<String>,
    /// The place of the signature.
    pub source: String,
    /// Index in the transparency log, if the log was checked.
    pub log_index: Option<u64>,
    /// When it was signed, if a trusted log or timestamp authority states it.
    pub time: Option<UnixTime>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// A key, by the SHA-256 of its `SubjectPublicKeyInfo` in hex digits.
    Key(String),
    /// A certificate's subject alternative name and the issuer of the identity.
    Certificate {
        /// Mail address, URI or name in the certificate.
        subject: String,
        /// URL of the `OpenID` issuer.
        issuer: String,
    },
}

/// The form of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidenceKind {
    /// Tag `.sig`.
    Signature,
    /// Tag `.att`.
    Attestation,
    /// A bundle that signs the image.
    Bundle,
    BundleAttestation,
}

/// A piece of evidence that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The place of the piece.
    pub source: String,
    pub class: Class,
    pub cause: String,
}

impl Verdict {
    pub fn is_verified(&self) -> bool {
        self.outcome == Outcome::Verified
    }
}

impl Class {
    /// The name in messages and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::Invalid => "invalid",
            Self::Mismatch => "mismatch",
            Self::Misconfigured => "misconfigured",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl EvidenceKind {
    /// The name in messages and audit annotations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Attestation => "attestation",
            Self::Bundle => "bundle",
            Self::BundleAttestation => "bundle-attestation",
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(fingerprint) => write!(out, "key sha256:{fingerprint}"),
            Self::Certificate { subject, issuer } => write!(out, "{subject} by {issuer}"),
        }
    }
}
