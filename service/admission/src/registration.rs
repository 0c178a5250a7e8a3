//! Whether the webhook is called: a webhook that is registered and cannot be called fails silently, or stops a cluster.
//!
//! Owns the look at its own registration, as the API server has it, and at Pods that nobody asked about. It only tells: a replica that
//! is not called would not be called more often if it were not ready.

mod calls;
mod judge;
mod monitor;
mod state;

pub use calls::Calls;
pub use monitor::{Monitor, Parts};
