//! The inbox of watch events: passes events to the reconciler that works at present; without a reconciler, it drops
//! them.
//!
//! This module owns the index of owners, which is updated even while another process reconciles. The inbox also maps
//! events to keys of packages.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::time::Instant;

use super::Reconciler;
use super::owners::Owners;
use super::policies::Applied;
use service_watch::{Change, Event};

/// Delay between an event of a policy and the check of the policy's package. After this delay, events about this
/// service's own writes have mostly arrived. With this delay, a user that edits again and again causes only two checks
/// a second.
const SETTLE: Duration = Duration::from_millis(500);

#[derive(Default)]
pub struct Inbox {
    pub(super) owners: Arc<Owners>,
    reconciler: RwLock<Option<Arc<Reconciler>>>,
}

impl Inbox {
    pub fn package(&self, event: &Event) {
        self.owners.package(event);
        let reconciler = self.reconciler.read();
        let Some(reconciler) = &*reconciler else { return };
        if event.change == Change::Deleted {
            reconciler.orphans.suspect((*event.object.uid).into());
        }
        reconciler.queue.add(event.object.key.clone());
    }

    pub fn policy(&self, event: &Event<Applied>) {
        let concerned = self.owners.policy(event);
        let reconciler = self.reconciler.read();
        let Some(reconciler) = &*reconciler else { return };
        // An object without a uid label is not ours, whatever a server sends.
        for uid in concerned.into_iter().filter(|uid| !uid.is_empty()) {
            match self.owners.find(&uid) {
                Some(key) => reconciler.queue.add_by(key, Instant::now() + SETTLE),
                None => reconciler.orphans.suspect(uid),
            }
        }
    }

    /// Passes events to `reconciler` from now on, and existing objects at once.
    pub(super) fn open(&self, reconciler: &Arc<Reconciler>) {
        *self.reconciler.write() = Some(Arc::clone(reconciler));
        for object in reconciler.store.snapshot() {
            reconciler.queue.add(object.key.clone());
        }
        for uid in self.owners.labelled() {
            if !uid.is_empty() && self.owners.find(&uid).is_none() {
                reconciler.orphans.suspect(uid);
            }
        }
    }

    /// Drops all watch events from now on.
    pub(super) fn close(&self) {
        *self.reconciler.write() = None;
    }
}
