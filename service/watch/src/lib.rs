//! The watch of a resource: keeps a complete view of its objects.
//!
//! This crate owns list, watch, relist, the store, the witness, and the Lease by which replicas elect a leader. The
//! state machine (`machine`) does no I/O: it takes the server's bytes and answers, and returns events and the next
//! request. The module `driver` owns sockets and clocks.

mod backoff;
pub mod config;
mod decode;
mod diagnostics;
mod driver;
pub mod events;
mod informer;
mod items;
mod lease;
mod machine;
mod object;
mod queue;
mod source;
mod store;
mod version;
mod witness;

pub use backoff::Backoff;
pub use diagnostics::{Diagnostics, Link};
pub use driver::{Backpressure, Sink};
pub use informer::{Informer, Start, View};
pub use items::Items;
pub use lease::{Elector, Tenure};
pub use machine::{Change, Event, PageError};
pub use object::{Allow, Direction, Key, Kind, Object, Package, RawObject, Status};
pub use queue::{Queue, QueueKey, Turn};
pub use service_core::watches::{Label, Metrics};
pub use source::{Form, Source};
pub use store::Store;
pub use version::reaches;
pub use witness::{TargetError, target as witness_target};
