//! The writes of users that faults may affect.
//!
//! Owns the bounded log of writes. The log is empty until a harness follows it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mock_faults::On;
use parking_lot::Mutex;

/// Maximum number of writes that wait for the reader.
const WRITES_MAX: usize = 16_384;

/// One write of a client, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The time of arrival in microseconds since the epoch.
    pub at_us: u64,
    pub user: Arc<str>,
    pub user_agent: Arc<str>,
    pub verb: On,
    /// The full name of the resource, such as `packages.longhaul.dev`.
    pub resource: Arc<str>,
    /// The subresource; empty if there is none.
    pub subresource: String,
    /// The namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// The name; empty if the server generated it.
    pub name: String,
    /// The fields that the client changes, sorted; none for creations and deletions.
    pub fields: Vec<String>,
    /// The status of the server's own answer, even if a fault replaced that answer.
    pub status: u16,
}

#[derive(Debug, Default)]
pub(crate) struct WriteLog {
    on: AtomicBool,
    inner: Mutex<(VecDeque<Written>, u64)>,
}

impl WriteLog {
    pub fn follow(&self) {
        self.on.store(true, Ordering::Release);
    }

    pub fn follows(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    pub fn push(&self, written: Written) {
        if !self.follows() {
            return;
        }
        let (writes, lost) = &mut *self.inner.lock();
        if writes.len() == WRITES_MAX {
            writes.pop_front();
            *lost += 1;
        }
        writes.push_back(written);
    }

    pub fn take(&self) -> (Vec<Written>, u64) {
        let (writes, lost) = &mut *self.inner.lock();
        (writes.drain(..).collect(), std::mem::take(lost))
    }
}
