//! What processes of this service, and validators of others, say to each other: the contract (docs/contract.md).
//!
//! Owns the forms on the wire and what is wrong with an answer, the pooled way to several instances, the listener of a role that is
//! asked, and the kit that any validator can be held against. What a verdict means is known to nobody here.

pub mod alerts;
pub mod answer;
pub mod desk;
pub mod external;
pub mod kit;
pub mod link;
pub mod listen;
pub mod pool;

/// Where a validator is asked (POST), and says who it is (GET).
pub const VALIDATE: &str = "/internal/v1/validate";
/// Where alerts are brought.
pub const ALERTS: &str = "/internal/v1/alerts";
/// Where Gatekeeper asks.
pub const EXTERNAL_DATA: &str = "/externaldata/v1beta1";
/// Largest answer of a validator: signers of an audit log and a cause, many times over.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The path and the query of a question that must be answered within `left`.
pub fn path(base: &str, path: &str, left: std::time::Duration) -> String {
    format!("{}{path}?timeoutMs={}", base.trim_end_matches('/'), left.as_millis())
}
