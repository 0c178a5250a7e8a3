//! The verdict on an image: outcome, signers and rejected objects.

use std::fmt;

use crate::time::UnixTime;

/// The result of verifying one image, for an answer, an audit log and a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the image fulfils the requirement.
    pub outcome: Outcome,
    /// Every signature that counts, sorted by root, then in the order of the evidence. A root or identity may occur
    /// several times, but counts once for the threshold.
    pub signers: Vec<Signer>,
    /// Every object that does not count as a signature, in the order of the evidence, with the cause.
    pub rejected: Vec<Rejected>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The image fulfils the requirement.
    Verified,
    /// The image does not fulfil the requirement.
    Refused {
        class: Class,
        /// The reason, as text for the person that deploys the image.
        cause: String,
    },
}

/// The kinds of failure that verification can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The image has no signature in any supported format.
    Unsigned,
    /// A signature is invalid, or there are too few signers.
    Invalid,
    /// A valid signature belongs to another image.
    Mismatch,
    /// No image can fulfil the requirement with these trust roots.
    Misconfigured,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    pub root: String,
    pub identity: Identity,
    pub kind: EvidenceKind,
    /// Predicate type of an attestation; `None` for a signature.
    pub predicate_type: Option<String>,
    /// The location where the signature was found.
    pub source: String,
    /// Index of the signature's entry in the transparency log, if the log was checked.
    pub log_index: Option<u64>,
    /// The signing time, if a trusted log or timestamp authority states it.
    pub time: Option<UnixTime>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// A key, named by the SHA-256 of its `SubjectPublicKeyInfo` in hex digits.
    Key(String),
    /// A certificate's subject alternative name and the issuer of the identity.
    Certificate {
        /// Mail address, URI or name in the certificate.
        subject: String,
        /// URL of the `OpenID` issuer.
        issuer: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidenceKind {
    /// A legacy signature, at a tag with `.sig`.
    Signature,
    /// A legacy attestation, at a tag with `.att`.
    Attestation,
    /// A bundle that signs the image.
    Bundle,
    BundleAttestation,
}

/// An object that does not count as a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The location where the object was found.
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
    /// The name of the class in messages and metric labels.
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
    /// The name of the format in messages and audit annotations.
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
