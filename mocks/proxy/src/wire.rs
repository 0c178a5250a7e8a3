//! A connection that the proxy serves, with its state and the faults that affect it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mock_faults::FaultId;

use super::faults::Faults;
use super::link::Link;
use super::shape::{End, Way};

/// A connection that the proxy serves. Dropping a `Wire` removes the connection from the list of open connections.
pub(super) struct Wire {
    link: Arc<Link>,
    faults: Arc<Faults>,
}

impl std::ops::Deref for Wire {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl Wire {
    pub fn enlist(faults: &Arc<Faults>, link: Arc<Link>) -> Self {
        Self { link, faults: faults.clone() }
    }

    pub fn note_moved(&self, way: Way, count: usize) {
        let count = count as u64;
        self.link.moved[way as usize].fetch_add(count, Ordering::Release);
        self.faults.note_moved(way, count);
    }

    /// Records the first effect of a fault on this connection. Further effects of the fault on this connection are not
    /// recorded.
    pub fn hit_once(&self, by: FaultId, what: impl FnOnce() -> String) {
        if self.link.is_first(by) {
            self.faults.hit(by, format!("{}: {}", self.link.describe(), what()));
        }
    }

    /// A random number from 0 to 1.
    pub fn random(&self) -> f64 {
        self.faults.random()
    }

    /// Waits until a fault ends the connection.
    pub async fn ended(&self) -> End {
        let mut shape = self.link.shape.subscribe();
        loop {
            if let Some(end) = shape.borrow_and_update().end {
                return end;
            }
            if shape.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.faults.closed(self.link.id);
    }
}
