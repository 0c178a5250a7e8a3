//! Verification of image signatures, the only code of the service that knows sigstore's formats.
//!
//! The functions take bytes and the time and return a verdict, without sockets, files or clocks. The caller fetches the
//! blobs that [`oci`] names and passes them as [`Evidence`]. This crate checks every link between a trust root and the
//! image's digest: a statement of a registry or tool alone proves nothing.
//!
//! A caller uses [`Trust::compile`] once for a configuration, [`oci`] to find the blobs of an image's signatures, and
//! [`verify`] to check them.

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
