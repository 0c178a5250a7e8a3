//! The watch: a complete view of one resource, and the reconciler that acts on it.
//!
//! Owns list, watch, relist, the store, the witness, and the reconcile queue. The core (`machine`) is pure: bytes and
//! answers in, events and the next action out; sockets and clocks are in `driver`. This room does not know of `admission`.

mod backoff;
mod decode;
mod diagnostics;
mod driver;
mod lease;
mod machine;
mod object;
mod queue;
mod reconcile;
mod room;
mod store;
mod version;
mod witness;

pub use diagnostics::Diagnostics;
pub use room::{Options, Room};
pub use witness::target as witness_target;
