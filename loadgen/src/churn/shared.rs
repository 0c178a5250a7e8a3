//! The state shared by the worker, its operations and the readers of their results.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::answers::Collector;
use super::interval::Recorder;
use super::writes::Record;
use crate::open_loop::Counts;

/// A canary: a write that every watcher must see within a short time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryWrite {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub counts: Arc<Counts>,
    pub recorder: Mutex<Recorder>,
    pub heard: Mutex<Collector>,
    pub objects_total: AtomicU64,
    /// The record of writes; `None` if the plan records no writes.
    pub writes: Option<Mutex<Record>>,
}
