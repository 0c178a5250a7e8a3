//! Verification of image signatures: the only part of the service that knows sigstore.
//!
//! Pure: bytes in, a verdict out. Nothing here opens a socket, reads a file or asks a clock. The caller fetches the
//! blobs that [`oci`] names, passes them as [`Evidence`], and passes the time. Every link between a trust root and the
//! image's digest is checked here on its own: nothing is trusted because a registry or a tool states it.
//!
//! A caller uses [`Trust::compile`] once for a configuration, [`oci`] to find the blobs of an image's signatures, and
//! [`verify`] to judge them.

mod authority;
mod bundle;
mod certificate;
mod claim;
mod digest;
mod entry;
mod envelope;
mod evidence;
mod json;
mod key;
mod log;
mod merkle;
pub mod oci;
mod pattern;
mod piece;
mod requirement;
mod sct;
mod signer;
mod time;
mod timestamp;
mod trust;
mod verdict;
mod verification;

pub use digest::{Digest, DigestError, Subject};
pub use evidence::{Attestation, Bundle, Companions, Evidence, Signature};
pub use pattern::{Pattern, PatternError};
pub use requirement::{AttestationRule, FieldRule, ReferenceCheck, Requirement, Roots, Timestamps};
pub use time::UnixTime;
pub use trust::{AuthoritySpec, AuthorityText, Fingerprint, Listed, RootKind, RootSpec, Trust, TrustError, TrustSpec};
pub use verdict::{Class, EvidenceKind, Identity, Outcome, Rejected, Signer, Verdict};
pub use verification::{EVIDENCE_MAX, Judged, RequirementError, Trial, verify};
