//! The watch: a complete view of a resource, and the reconciler that acts on one of them.
//!
//! Owns list, watch, relist, the store, the witness, and the reconcile queue. The core (`machine`) is pure: bytes and
//! answers in, events and the next action out; sockets and clocks are in `driver`. This room does not know of `admission`.

mod backoff;
mod decode;
mod diagnostics;
mod driver;
mod informer;
mod lease;
mod machine;
mod object;
mod queue;
mod reconcile;
mod room;
mod store;
mod version;
mod witness;

#[cfg(feature = "own-certificates")]
pub(crate) use backoff::Backoff;
pub use diagnostics::{Diagnostics, Link, Metrics};
pub use informer::{Informer, Start, View};
#[cfg(feature = "own-certificates")]
pub(crate) use lease::Elector;
pub use machine::Event;
pub use object::{Key, Kind, Object, RawObject};
pub use room::{Options, Room};
pub use store::Store;
pub use version::reaches;
pub use witness::{TargetError, target as witness_target};
