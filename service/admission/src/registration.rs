//! Checks that the webhook is called. A registered webhook that cannot be called fails without notice, or stops a
//! cluster.
//!
//! This module reads the webhook's registration from the API server and searches for Pods that were created without a
//! review. It only reports problems: an unready replica would not be called more often.

mod calls;
mod judge;
mod monitor;
mod state;

pub use calls::Calls;
pub use monitor::{Monitor, Parts};
