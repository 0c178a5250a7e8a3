//! The reconciler for packages: phases, retries, finalizer, and one NetworkPolicy for each allowed connection.
//!
//! Owns what it remembers about a package between two visits, and forgets it with the package. It reads the store and
//! writes through the API; it never touches the watch.

mod api;
mod policies;
mod status;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::time::Instant;

use super::diagnostics::Label;
use super::object::{Key, Object};
use super::queue::Queue;
use super::store::Store;
use crate::kube::Client;
use api::{Api, Error};
use status::Report;

/// The finalizer that lets the clean-up run before a package is gone.
const FINALIZER: &str = "longhaul.dev/cleanup";

/// Works on packages.
pub struct Reconciler {
    retries: Vec<Duration>,
    api: Api,
    store: Store,
    queue: Arc<Queue>,
    memos: Mutex<BTreeMap<Key, Memo>>,
    results: Family<Label, Counter>,
}

/// What is remembered about a package while it exists.
#[derive(Debug, Clone, Default)]
struct Memo {
    uid: Box<str>,
    /// Generation that was brought to an end, good or bad.
    done: Option<i64>,
    /// Generation that `failures` and `retry_at` are about.
    generation: i64,
    failures: usize,
    retry_at: Option<Instant>,
    /// The clean-up is done: nothing is left to remove when the object goes.
    cleaned: bool,
}

/// What to do about a package.
#[derive(Debug, PartialEq, Eq)]
enum Work {
    /// Nothing.
    Skip,
    /// Bring the cluster to what the spec says.
    Apply,
    /// It is being deleted: remove what belongs to it, then our finalizer.
    Remove,
}

impl Reconciler {
    /// A reconciler that has seen nothing.
    pub fn new(
        retries: Vec<Duration>,
        client: Arc<Client>,
        store: Store,
        queue: Arc<Queue>,
        results: Family<Label, Counter>,
    ) -> Self {
        Self { retries, api: Api::new(client), store, queue, memos: Mutex::default(), results }
    }

    /// Works until the queue is closed.
    pub async fn work(self: Arc<Self>) {
        while let Some(lease) = self.queue.next().await {
            self.visit(&lease.key).await;
            self.queue.done(lease);
        }
    }

    /// Visits one package. The queue sees to it that nobody else visits it meanwhile.
    async fn visit(&self, key: &Key) {
        let memo = self.memos.lock().get(key).cloned();
        let Some(object) = self.store.object(key) else {
            if let Some(memo) = memo {
                self.gone(key, memo).await;
            }
            return;
        };
        let memo = match memo {
            Some(memo) if memo.uid == object.uid => Some(memo),
            // Another object under the name: what the old one left is found by its uid.
            Some(old) => {
                self.gone(key, old).await;
                None
            }
            None => None,
        };
        let work = decide(&object, memo.as_ref(), Instant::now());
        if work == Work::Skip {
            return self.count("skipped");
        }
        // The visit's own copy: it follows what the visit writes.
        let mut object = Object::clone(&object);
        let result = match work {
            Work::Remove => self.remove(&mut object).await.map(|()| object.generation),
            _ => self.apply(&mut object).await,
        };
        let memo = memo.unwrap_or_else(|| Memo { uid: object.uid.clone(), ..Memo::default() });
        match result {
            Ok(generation) => {
                self.count(if object.deleting { "removed" } else { "ready" });
                let memo =
                    Memo { done: Some(generation), failures: 0, retry_at: None, cleaned: object.deleting, ..memo };
                self.remember(key, memo);
            }
            // Somebody deleted it meanwhile; the watch will say so.
            Err(Error::Gone) => {
                self.count("gone");
                self.remember(key, memo);
            }
            Err(error) => self.failed(&mut object, memo, &error).await,
        }
    }

    /// The package is gone: removes what it left, unless the clean-up has done so.
    async fn gone(&self, key: &Key, mut memo: Memo) {
        if memo.cleaned {
            self.memos.lock().remove(key);
            return;
        }
        match self.api.remove_policies(&key.namespace, &memo.uid).await {
            Ok(()) => {
                self.count("removed");
                self.memos.lock().remove(key);
            }
            Err(error) => {
                memo.failures += 1;
                tracing::warn!(%key, %error, "what a deleted package left was not removed");
                match self.retries.get(memo.failures - 1) {
                    Some(wait) => {
                        self.queue.add_at(key.clone(), Instant::now() + *wait);
                        self.remember(key, memo);
                    }
                    // Owner references let the cluster's garbage collector finish the job.
                    None => drop(self.memos.lock().remove(key)),
                }
            }
        }
    }

    async fn failed(&self, object: &mut Object, memo: Memo, error: &Error) {
        let failures = if memo.generation == object.generation { memo.failures + 1 } else { 1 };
        let wait = self.retries.get(failures - 1).copied().filter(|_| error.may_pass() || object.deleting);
        tracing::warn!(package = %object.key, failures, %error, "reconciliation failed");
        let phase = match (object.deleting, wait) {
            (false, Some(_)) => "Retrying",
            (false, None) => "Failed",
            (true, Some(_)) => "Removing",
            (true, None) => "RemovalFailed",
        };
        self.count(if wait.is_some() { "retrying" } else { "failed" });
        self.api.warn(object, &error.to_string()).await;
        let observed = wait.is_none().then_some(object.generation);
        let report = Report { phase, observed, message: &error.to_string(), policies: None, retries: failures };
        let written = self.api.status(object, report).await;
        // A deletion is never given up: its finalizer would keep the object for ever.
        let wait = wait.or_else(|| {
            self.retries.last().copied().filter(|_| {
                // A status that cannot be written for good would be tried for ever.
                object.deleting || written.as_ref().is_err_and(Error::may_pass)
            })
        });
        let retry_at = wait.map(|wait| Instant::now() + wait);
        let done = if retry_at.is_none() { Some(object.generation) } else { memo.done };
        self.remember(&object.key, Memo { done, generation: object.generation, failures, retry_at, ..memo });
        if let Some(when) = retry_at {
            self.queue.add_at(object.key.clone(), when);
        }
    }

    fn remember(&self, key: &Key, memo: Memo) {
        self.memos.lock().insert(key.clone(), memo);
        if self.store.object(key).is_none() {
            // It went while we worked: the visit that forgets it may already have been, so ask for another.
            self.queue.add(key.clone());
        }
    }

    fn count(&self, result: &'static str) {
        self.results.get_or_create(&Label::new(result)).inc();
    }
}

/// The skip rules: the first sight in this process is never skipped, nor a due retry; our own status writes always are.
fn decide(object: &Object, memo: Option<&Memo>, now: Instant) -> Work {
    let ours = object.finalizers.iter().any(|finalizer| &**finalizer == FINALIZER);
    let retry_waits =
        memo.is_some_and(|memo| memo.generation == object.generation && memo.retry_at.is_some_and(|when| when > now));
    if object.deleting {
        let removed = memo.is_some_and(|memo| memo.cleaned);
        return if ours && !removed && !retry_waits { Work::Remove } else { Work::Skip };
    }
    let Some(memo) = memo else { return Work::Apply };
    // The store may lag behind our own writes, so what we finished counts before what the status says.
    if retry_waits || memo.done.is_some_and(|done| done >= object.generation) {
        return Work::Skip;
    }
    if memo.retry_at.is_some() || &*object.status.phase == "Retrying" {
        return Work::Apply;
    }
    let settled = object.status.observed_generation == Some(object.generation);
    if settled { Work::Skip } else { Work::Apply }
}

#[cfg(test)]
mod tests;
