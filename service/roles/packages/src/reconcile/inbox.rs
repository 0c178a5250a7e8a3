//! The inbox of watch events: passes them to the reconciler that works at this moment, or drops them.
//!
//! This module owns the index of owners, which is maintained also while another process reconciles, and the mapping
//! from an event to the keys with work.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::time::Instant;

use super::Reconciler;
use super::owners::Owners;
use super::policies::Applied;
use service_watch::{Change, Event};

/// How long after an event of a policy its package is checked: by then the events of our own writes have mostly
/// arrived, and a user that edits in a loop causes two checks a second.
const SETTLE: Duration = Duration::from_millis(500);

#[derive(Default)]
pub struct Inbox {
    pub(super) owners: Arc<Owners>,
    reconciler: RwLock<Option<Arc<Reconciler>>>,
}

impl Inbox {
    /// Takes an accepted event of the watch of packages.
    pub fn package(&self, event: &Event) {
        self.owners.package(event);
        let reconciler = self.reconciler.read();
        let Some(reconciler) = &*reconciler else { return };
        if event.change == Change::Deleted {
            reconciler.orphans.suspect((*event.object.uid).into());
        }
        reconciler.queue.add(event.object.key.clone());
    }

    /// Takes an accepted event of the watch of policies.
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

    /// From now on `reconciler` gets the events. It gets existing objects at once.
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

    /// From now on events are dropped.
    pub(super) fn close(&self) {
        *self.reconciler.write() = None;
    }
}
