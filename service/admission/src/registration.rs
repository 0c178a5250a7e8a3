//! Checks that the webhook is called. A registered webhook that cannot be called fails without notice, or stops a
//! cluster.
//!
//! This module reads the webhook's registration from the API server and searches for Pods that were created without a
//! review. This module only reports problems. A problem does not make the replica unready, because an unready replica
//! would not get more calls.

mod calls;
mod judge;
mod monitor;
mod state;

pub use calls::Calls;
pub use monitor::{Monitor, Parts};
