//! The check whether the webhook is called: a registered webhook that cannot be called fails silently, or stops a
//! cluster.
//!
//! This module reads its own registration from the API server, and searches for Pods created without a review. It only
//! reports: an unready replica would not be called more often.

mod calls;
mod judge;
mod monitor;
mod state;

pub use calls::Calls;
pub use monitor::{Monitor, Parts};
