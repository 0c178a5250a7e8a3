//! The protocol between processes of this service and validators of other projects (docs/contract.md).
//!
//! This crate owns the message formats, the faults of an answer, pooled connections to several instances, and the
//! listener of roles that other processes call. The conformance kit of this crate checks any validator. The crate does
//! not decide what follows from a verdict.

pub mod alerts;
pub mod answer;
pub mod endpoint;
pub mod events;
pub mod external;
pub mod kit;
pub mod link;
pub mod listen;
pub mod pool;

/// The path for inquiries to a validator (POST) and for its description (GET).
pub const VALIDATE: &str = "/internal/v1/validate";
pub const ALERTS: &str = "/internal/v1/alerts";
/// The path for requests from Gatekeeper.
pub const EXTERNAL_DATA: &str = "/externaldata/v1beta1";
/// Largest answer of a validator, in bytes: many times the size of a failure's cause or of the signers for an audit
/// log.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The path and query of an inquiry that must be answered within `left`.
pub fn path(base: &str, path: &str, left: std::time::Duration) -> String {
    format!("{}{path}?timeoutMs={}", base.trim_end_matches('/'), left.as_millis())
}
