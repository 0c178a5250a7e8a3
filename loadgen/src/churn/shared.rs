//! What the worker, its operations and whoever looks at them share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::answers::Collector;
use super::interval::Recorder;
use super::writes::Record;
use crate::open_loop::Counts;

/// A write that everybody who watches must see soon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryWrite {
    /// The canary's namespace.
    pub namespace: String,
    /// The canary's name.
    pub name: String,
    /// The canary's uid.
    pub uid: String,
    /// The version that was written.
    pub resource_version: String,
}

/// Shared between the threads.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub counts: Arc<Counts>,
    pub recorder: Mutex<Recorder>,
    pub heard: Mutex<Collector>,
    pub objects_total: AtomicU64,
    /// Only when the plan records writes.
    pub writes: Option<Mutex<Record>>,
}
