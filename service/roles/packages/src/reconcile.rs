//! The reconciler of packages: phases, retries, finalizer, and one NetworkPolicy for each allowed connection. If other
//! clients change or delete such a policy, the reconciler restores it.
//!
//! This module remembers facts about a package between two reconciliations, and forgets them when the package is gone.
//! The reconciler reads the stores and writes through the API; it does not control the watches.

mod api;
mod inbox;
mod orphans;
mod owners;
mod policies;
mod status;
mod steps;
mod term;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::time::Instant;

use service_watch::{Key, Label, Object, Queue, Store, Tenure};

use api::{Api, Error};
pub use inbox::Inbox;
use orphans::Orphans;
use owners::Owners;
pub use policies::Applied;
use status::Report;
use steps::Done;
pub use term::{Parts, Term};

/// The finalizer that delays the deletion of a package until its policies are removed.
const FINALIZER: &str = "longhaul.dev/cleanup";
/// The pause after the second restoration of a policy in a row. The pause doubles with each restoration, so that two
/// conflicting writers do not write without pause.
const RESTORE_PAUSE: Duration = Duration::from_secs(1);
const RESTORE_PAUSE_MAX: Duration = Duration::from_mins(5);
/// After this time without a restoration, the next restoration counts as the first in a row.
const RESTORES_FORGOTTEN: Duration = Duration::from_mins(10);

/// Reconciles packages while this process leads.
pub struct Reconciler {
    retries: Vec<Duration>,
    api: Api,
    store: Store,
    policies: Store<Applied>,
    owners: Arc<Owners>,
    queue: Queue,
    orphans: Orphans,
    tenure: Tenure,
    memos: Mutex<BTreeMap<Key, Memo>>,
    results: Family<Label, Counter>,
}

/// The facts that are remembered about a package while it exists.
#[derive(Debug, Clone, Default)]
struct Memo {
    uid: Box<str>,
    /// The last generation of the package whose reconciliation ended, with success or failure.
    done: Option<i64>,
    /// Whether the last generation succeeded; in this case, its policies are restored after changes.
    kept: bool,
    /// The number of restorations in a row.
    restores: u32,
    restored_at: Option<Instant>,
    /// The generation to which `failures` and `retry_at` belong.
    generation: i64,
    failures: usize,
    retry_at: Option<Instant>,
    /// Whether the policies of the package were removed, so that no work is left when the package disappears.
    cleaned: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Work {
    Skip,
    /// Apply the spec of the package to the cluster.
    Apply,
    /// Apply the spec again after another client changed or deleted a policy.
    Restore,
    /// The package is being deleted: remove its policies, then the finalizer of this service.
    Remove,
}

impl Reconciler {
    /// Reconciles packages from the queue until the queue is closed.
    async fn work(self: Arc<Self>) {
        while let Some(turn) = self.queue.next().await {
            self.visit(&turn.key).await;
            self.queue.done(turn);
        }
    }

    /// Reconciles one package. The queue ensures that no package is reconciled twice at the same time.
    async fn visit(&self, key: &Key) {
        if !self.tenure.holds() {
            // The present leader visits it; this term is about to be cut.
            return;
        }
        let memo = self.memos.lock().get(key).cloned();
        let Some(object) = self.store.object(key) else {
            // Its remaining objects are found by its uid.
            self.memos.lock().remove(key);
            return;
        };
        // Another object of the same name is another package.
        let memo = memo.filter(|memo| memo.uid == object.uid);
        let now = Instant::now();
        let mut work = decide(&object, memo.as_ref(), now);
        if let (Work::Skip, Some(memo)) = (&work, &memo) {
            work = self.check(&object, memo, now);
        }
        if work == Work::Skip {
            return self.count("skipped");
        }
        // The visit's own copy, which follows its writes.
        let mut object = Object::clone(&object);
        let result = match work {
            Work::Remove => self.remove(&mut object).await,
            _ => self.apply(&mut object, memo.is_some()).await,
        };
        let memo = memo.unwrap_or_else(|| Memo { uid: object.uid.clone(), ..Memo::default() });
        match result {
            Ok(done) if work == Work::Restore => self.restored(&object, memo, done).await,
            Ok(Done { generation, .. }) => {
                let deleting = object.body.deleting;
                self.count(if deleting { "removed" } else { "ready" });
                let (done, kept) = (Some(generation), !deleting);
                self.remember(key, Memo { done, kept, failures: 0, retry_at: None, cleaned: deleting, ..memo });
            }
            // It was deleted meanwhile; the watch will report that.
            Err(Error::Gone) => {
                self.count("gone");
                self.remember(key, memo);
            }
            Err(error) => self.failed(&mut object, memo, &error).await,
        }
    }

    /// Checks whether the policies of a package are as applied and, if not, whether a restoration is due.
    fn check(&self, object: &Object, memo: &Memo, now: Instant) -> Work {
        if let Some(when) = memo.retry_at.filter(|when| *when > now) {
            // This visit may have replaced the scheduled one.
            self.queue.add_by(object.key.clone(), when);
            return Work::Skip;
        }
        let (true, false, Ok(allow)) = (memo.kept, object.body.deleting, &object.body.allow) else { return Work::Skip };
        if memo.done != Some(object.body.generation) || self.in_place(object, &policies::for_package(object, allow)) {
            return Work::Skip;
        }
        let quiet_until = memo.restored_at.map(|last| last + restore_pause(memo.restores));
        match quiet_until.filter(|until| *until > now) {
            Some(until) => {
                self.queue.add_by(object.key.clone(), until);
                Work::Skip
            }
            None => Work::Restore,
        }
    }

    /// Records that a reconciliation restored policies.
    async fn restored(&self, object: &Object, memo: Memo, done: Done) {
        if done.writes == 0 {
            // The watch lagged behind our own writes.
            return self.count("skipped");
        }
        let now = Instant::now();
        let long_ago = memo.restored_at.is_none_or(|last| now.duration_since(last) > RESTORES_FORGOTTEN);
        let restores = if long_ago { 1 } else { memo.restores.saturating_add(1) };
        let message = format!("{} network policies were not as they should be and were restored", done.writes);
        tracing::warn!(name: crate::events::RECONCILE_RESTORED, package = %object.key, restores, message);
        self.count("restored");
        self.api.warn(object, "NetworkPolicyRestored", &message).await;
        self.remember(&object.key, Memo { restores, restored_at: Some(now), retry_at: None, failures: 0, ..memo });
    }

    async fn failed(&self, object: &mut Object, memo: Memo, error: &Error) {
        let generation = object.body.generation;
        let deleting = object.body.deleting;
        let failures = if memo.generation == generation { memo.failures.saturating_add(1) } else { 1 };
        let wait = self.retries.get(failures - 1).copied().filter(|_| error.may_pass() || deleting);
        tracing::warn!(name: crate::events::RECONCILE_FAILED, package = %object.key, failures, %error, "reconciliation failed");
        let phase = match (deleting, wait) {
            (false, Some(_)) => "Retrying",
            (false, None) => "Failed",
            (true, Some(_)) => "Removing",
            (true, None) => "RemovalFailed",
        };
        self.count(if wait.is_some() { "retrying" } else { "failed" });
        self.api.warn(object, "ReconciliationFailed", &error.to_string()).await;
        let observed = wait.is_none().then_some(generation);
        let report = Report { phase, observed, message: &error.to_string(), policies: None, retries: failures };
        let written = self.api.status(object, report).await;
        // A deletion is never given up: its finalizer would keep the object for ever.
        let wait = wait.or_else(|| {
            self.retries.last().copied().filter(|_| {
                // A status that can never be written would be retried for ever.
                deleting || written.as_ref().is_err_and(Error::may_pass)
            })
        });
        let retry_at = wait.map(|wait| Instant::now() + wait);
        let done = if retry_at.is_none() { Some(generation) } else { None };
        self.remember(&object.key, Memo { done, kept: false, generation, failures, retry_at, ..memo });
        if let Some(when) = retry_at {
            self.queue.add_at(object.key.clone(), when);
        }
    }

    fn remember(&self, key: &Key, memo: Memo) {
        self.memos.lock().insert(key.clone(), memo);
        if self.store.object(key).is_none() {
            // It was deleted during the visit: the visit that forgets it may already be over, so another one is needed.
            self.queue.add(key.clone());
        }
    }

    fn count(&self, result: &'static str) {
        self.results.get_or_create(&Label::new(result)).inc();
    }
}

/// Decides which work a package needs. If a package is new to this process, or a retry is due, the package is never
/// skipped. Events that this service's own status writes cause are always skipped.
fn decide(object: &Object, memo: Option<&Memo>, now: Instant) -> Work {
    let ours = object.body.finalizers.iter().any(|finalizer| &**finalizer == FINALIZER);
    let retry_waits = memo
        .is_some_and(|memo| memo.generation == object.body.generation && memo.retry_at.is_some_and(|when| when > now));
    if object.body.deleting {
        let removed = memo.is_some_and(|memo| memo.cleaned);
        return if ours && !removed && !retry_waits { Work::Remove } else { Work::Skip };
    }
    let Some(memo) = memo else { return Work::Apply };
    // The store may lag behind our own writes, so our own memory counts before the status.
    if retry_waits || memo.done.is_some_and(|done| done >= object.body.generation) {
        return Work::Skip;
    }
    if memo.retry_at.is_some() || &*object.body.status.phase == "Retrying" {
        return Work::Apply;
    }
    let settled = object.body.status.observed_generation == Some(object.body.generation);
    if settled { Work::Skip } else { Work::Apply }
}

/// The pause before the next restoration of a policy, after `restores` restorations in a row.
fn restore_pause(restores: u32) -> Duration {
    let doublings = restores.saturating_sub(2);
    if restores < 2 {
        return Duration::ZERO;
    }
    RESTORE_PAUSE.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(RESTORE_PAUSE_MAX)
}

#[cfg(test)]
mod tests;
