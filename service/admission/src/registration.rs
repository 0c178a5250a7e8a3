//! Checks that the webhook is registered and called. If a registered webhook cannot be called, objects stay without a
//! review, or the cluster cannot create objects.
//!
//! This module reads the webhook's registration from the API server and searches for Pods that were created without a
//! review. This module only reports problems and corrects none. A problem does not make the replica unready, because an
//! unready replica would not get more calls.

mod calls;
mod judge;
mod monitor;
mod state;

pub use calls::Calls;
pub use monitor::{Monitor, Parts};
