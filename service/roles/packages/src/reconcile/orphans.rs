//! Orphans: policies whose package is gone, even if it was deleted while no process ran or another process led.
//!
//! This module owns the suspects and the removal of their policies. A suspect is a package uid that is in a label of
//! policies and belongs to no known package. Before a removal, the API server is asked whether the package exists,
//! because the watch of packages may be behind the watch of policies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Reconciler;
use super::api::Error;
use super::policies::Applied;
use service_watch::{Key, Object};

/// Delay between the first sight of a suspect and its check. The watches of packages and policies rarely differ by more
/// than one second.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// Delay before the check of a policy without an owner reference that names its package. The delay is longer than a
/// watch may be silent, so the watch has delivered the package if it exists.
const NAMELESS_WAIT: Duration = Duration::from_mins(2);
/// Longest pause between two attempts to remove an orphan.
const PAUSE_MAX: Duration = Duration::from_mins(5);

/// The suspects; there are never more suspects than policies.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    suspects: Mutex<BTreeMap<Arc<str>, Suspect>>,
    wake: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Suspect {
    since: Instant,
    due: Instant,
    looks: u32,
}

enum Verdict {
    /// The suspect is no orphan, or its policies were removed.
    Settled,
    /// The check had no result and must be repeated later.
    Open,
}

impl Orphans {
    /// Adds a uid that no known package has.
    pub fn suspect(&self, uid: Arc<str>) {
        let now = Instant::now();
        self.suspects.lock().entry(uid).or_insert(Suspect { since: now, due: now + FIRST_LOOK, looks: 0 });
        self.wake.notify_one();
    }

    /// Waits for the next suspect whose check is due.
    async fn next(&self) -> (Arc<str>, Suspect) {
        loop {
            let first = {
                let suspects = self.suspects.lock();
                suspects.iter().min_by_key(|(_, suspect)| suspect.due).map(|(uid, suspect)| (Arc::clone(uid), *suspect))
            };
            match first {
                None => self.wake.notified().await,
                Some((uid, suspect)) if suspect.due <= Instant::now() => return (uid, suspect),
                Some((_, suspect)) => tokio::select! {
                    () = self.wake.notified() => {}
                    () = sleep_until(suspect.due) => {}
                },
            }
        }
    }

    fn settle(&self, uid: &str) {
        self.suspects.lock().remove(uid);
    }

    fn postpone(&self, uid: &Arc<str>, suspect: Suspect) {
        let looks = suspect.looks.saturating_add(1);
        let pause = FIRST_LOOK.saturating_mul(1u32.checked_shl(looks).unwrap_or(u32::MAX)).min(PAUSE_MAX);
        let again = Suspect { due: Instant::now() + pause, looks, ..suspect };
        self.suspects.lock().insert(Arc::clone(uid), again);
    }
}

impl Reconciler {
    /// Checks suspects and removes orphans until dropped.
    pub(super) async fn sweep(self: Arc<Self>) {
        loop {
            let (uid, suspect) = self.orphans.next().await;
            match self.look(&uid, suspect).await {
                Ok(Verdict::Settled) => self.orphans.settle(&uid),
                Ok(Verdict::Open) => self.orphans.postpone(&uid, suspect),
                Err(error) => {
                    tracing::warn!(name: crate::events::ORPHANS_FAILED, %uid, %error, "policies of a package that is gone were not removed");
                    self.orphans.postpone(&uid, suspect);
                }
            }
        }
    }

    async fn look(&self, uid: &str, suspect: Suspect) -> Result<Verdict, Error> {
        if let Some(key) = self.owners.find(uid) {
            self.queue.add(key);
            return Ok(Verdict::Settled);
        }
        let policies: Vec<_> = self.owners.policies(uid).iter().filter_map(|key| self.policies.object(key)).collect();
        if policies.is_empty() {
            return Ok(Verdict::Settled);
        }
        if self.may_exist(uid, &policies, suspect).await? {
            return Ok(Verdict::Open);
        }
        for policy in &policies {
            if !self.tenure.holds() {
                return Ok(Verdict::Open);
            }
            tracing::info!(name: crate::events::ORPHAN_REMOVED, policy = %policy.key, %uid, "the package of this policy is gone: removed");
            self.api.delete_policy(policy).await?;
            self.count("orphaned");
        }
        // Deletion events arrive later; policies made meanwhile are found then.
        Ok(Verdict::Open)
    }

    async fn may_exist(&self, uid: &str, policies: &[Arc<Object<Applied>>], suspect: Suspect) -> Result<bool, Error> {
        let mut names: Vec<&str> = policies.iter().filter_map(|policy| policy.body.package.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Ok(suspect.since.elapsed() < NAMELESS_WAIT);
        }
        for name in names {
            let namespace = Arc::clone(&policies[0].key.namespace);
            if self.api.package_exists(&Key { namespace, name: name.into() }, uid).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
