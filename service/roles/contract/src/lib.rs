//! The contract between the processes of this service and foreign validators (docs/contract.md).
//!
//! This crate owns the forms on the wire, the faults of an answer, the pooled connections to several instances, the
//! listener of a role that other processes call, and the kit that checks any validator. It does not interpret verdicts.

pub mod alerts;
pub mod answer;
pub mod endpoint;
pub mod events;
pub mod external;
pub mod kit;
pub mod link;
pub mod listen;
pub mod pool;

/// The path of questions to a validator (POST) and of its self-description (GET).
pub const VALIDATE: &str = "/internal/v1/validate";
/// The path that receives alerts.
pub const ALERTS: &str = "/internal/v1/alerts";
/// The path of Gatekeeper's questions.
pub const EXTERNAL_DATA: &str = "/externaldata/v1beta1";
/// Largest answer of a validator: signers of an audit log and a cause, many times over.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The path and the query of a question that must be answered within `left`.
pub fn path(base: &str, path: &str, left: std::time::Duration) -> String {
    format!("{}{path}?timeoutMs={}", base.trim_end_matches('/'), left.as_millis())
}
