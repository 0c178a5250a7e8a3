//! Drift: the harness deletes or edits children of the subject, under load or after it, as a user with kubectl would.
//!
//! Owns the choice of children, their change, and the observation of changed children until their parents are written.
//! The end state shows whether all children are right at the end of the run. The fault `children-drift` owns the times.
//!
//! A restored child proves something only as long as its parent is not written: a subject that watches only parents
//! also restores the child at the next write of the parent. The harness changes children whose parents are not written
//! for a while, and checks whether the subject restores the children in the meantime.

mod aftermath;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hyper::Method;
use loadgen::churn::Api;
use mock_faults::{ChildrenDriftKeys, DRIFT_SHARE, Fault, Name};
use parking_lot::Mutex;
use reports::record::Drifted;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio_util::task::TaskTracker;

use self::aftermath::{Aftermath, Taken};
use super::end_state::children::{Known, parent_of};
use super::end_state::churned;
use super::end_state::list::{Item, list};
use super::install;
use crate::clock::{Clock, millis};
use crate::scenario::{Children, Kinds, Scenario};

/// Maximum number of children of one change, because each child is a separate request.
const CHILDREN_MAX: usize = 1000;
/// Longest time of one change, which lists parents and children and sends a request for each changed child.
const CHANGE_MAX: Duration = Duration::from_secs(30);
/// A change avoids parents that the churn writes within this time: the shortest deadline for observations.
const ALONE_FOR: Duration = Duration::from_secs(5);
/// How far ahead the churn's plan is searched for writes of parents, and the longest wait for a restoration.
const AHEAD: Duration = Duration::from_mins(5);

/// Changes children of the subject, and counts the children that the subject restores.
pub(super) struct Drifts {
    plan: Plan,
    drifted: Mutex<Drifted>,
    /// Tasks that observe changed children.
    watches: TaskTracker,
}

/// Inputs for all changes of children.
#[derive(Clone)]
struct Plan {
    kinds: Kinds,
    resource: String,
    path: String,
    seed: u64,
    api: Api,
    clock: Clock,
    writers: Writers,
}

/// One change of children.
struct Drift {
    children: Children,
    share: f64,
    /// The merge patch that edits the children; `None` to delete them.
    edit: Option<Map<String, Value>>,
    /// Whether no parent is written any more.
    after_load: bool,
}

/// Planned writes of parents, by churn and by a script.
#[derive(Clone, Default)]
struct Writers {
    churn: Vec<loadgen::churn::Plan>,
    /// Times of a script's writes, which may concern any object; `None` for a write that waits for a hit.
    script: Vec<Option<Duration>>,
    loaded: Duration,
}

struct Done {
    /// The changed children, in words.
    changed: Vec<String>,
    drifted: Drifted,
    aftermath: Option<Aftermath>,
}

impl Drifts {
    /// `None` if no fault of the scenario changes children.
    pub(super) fn of(scenario: &Scenario, api: Api, clock: Clock) -> Option<Arc<Self>> {
        let (resource, path) = churned(scenario).filter(|_| scenario.faults.has(Name::ChildrenDrift))?;
        let writers = Writers::of(scenario, &resource);
        let kinds = scenario.subject.children.clone();
        let plan = Plan { kinds, resource, path, seed: scenario.seed, api, clock, writers };
        Some(Arc::new(Self { plan, drifted: Mutex::default(), watches: TaskTracker::new() }))
    }

    /// Changes children as a fault says; `index` is the number of the fault. Returns the changed children, in words.
    pub(super) async fn change(self: &Arc<Self>, fault: &Fault, index: usize) -> Result<Vec<String>> {
        let drift = Drift::of(fault, &self.plan.kinds)?;
        let done = tokio::time::timeout(CHANGE_MAX, self.plan.clone().act(index, drift)).await;
        let done = done.context("the children could not be reached in time")??;
        self.add(done.drifted);
        if let Some(aftermath) = done.aftermath {
            let drifts = Arc::clone(self);
            self.watches.spawn(async move { drifts.add(aftermath.watch().await) });
        }
        Ok(done.changed)
    }

    /// Waits until no changed child is observed any more. Returns the results for all changed children.
    pub(super) async fn finish(&self) -> Drifted {
        self.watches.close();
        self.watches.wait().await;
        *self.drifted.lock()
    }

    fn add(&self, more: Drifted) {
        let mut drifted = self.drifted.lock();
        *drifted = add(*drifted, more);
    }
}

impl Drift {
    fn of(fault: &Fault, kinds: &Kinds) -> Result<Self> {
        let keys: ChildrenDriftKeys = fault.keys();
        let kind = kinds.meant(keys.children.as_deref()).context("no such kind of children")?;
        let share = keys.share.unwrap_or(DRIFT_SHARE);
        Ok(Self { children: kinds[kind].clone(), share, edit: keys.edit, after_load: keys.after_load.is_some() })
    }
}

impl Writers {
    fn of(scenario: &Scenario, resource: &str) -> Self {
        let loaded = scenario.phases.loaded();
        // The run has made the same plan already, so it cannot fail.
        let churn = loadgen::churn::Plan::all(&scenario.churn, scenario.seed, loaded).unwrap_or_default();
        let churn = churn.into_iter().filter(|plan| plan.resource_name() == resource).collect();
        let steps = scenario.script.iter().flat_map(|script| &script.steps);
        Self { churn, script: steps.map(|step| step.at.map(|at| at.0)).collect(), loaded }
    }

    /// The time of each object's next planned write at or after `now`; `None` if no write is planned.
    fn next_writes(&self, of: &BTreeSet<(String, String)>, now: Duration) -> BTreeMap<(String, String), Duration> {
        let mut next = BTreeMap::new();
        if now >= self.loaded {
            return next;
        }
        let until = now.saturating_add(AHEAD);
        // A script has few steps, and each is assumed to write the object.
        let step = self.script.iter().map(|at| at.unwrap_or(now)).filter(|at| *at >= now).min();
        // An object without a write in the searched time may have a later write.
        let beyond = (until < self.loaded).then_some(until);
        if let Some(at) = step.into_iter().chain(beyond).min() {
            next.extend(of.iter().map(|place| (place.clone(), at)));
        }
        for (place, at) in self.churn.iter().flat_map(|plan| plan.next_writes(of, now, until)) {
            next.entry(place).and_modify(|known| *known = (*known).min(at)).or_insert(at);
        }
        next
    }
}

impl Plan {
    /// Performs change number `index`.
    async fn act(self, index: usize, drift: Drift) -> Result<Done> {
        let keys = drift.children.clone();
        let collection = loadgen::churn::collection_path(&keys.resource).context("no resource")?;
        let parents = list(&self.api, &self.path, false).await?;
        let known = Known::of(&self.resource, &parents);
        let children = list(&self.api, &collection, true).await?;
        // A parent that is being deleted takes its children along.
        let places: BTreeMap<&str, (String, String)> = parents
            .iter()
            .filter(|item| item.object.pointer("/metadata/deletionTimestamp").is_none_or(Value::is_null))
            .map(|item| (item.uid.as_str(), (item.namespace.clone(), item.name.clone())))
            .collect();
        let mut of_parent: BTreeMap<&str, u64> = BTreeMap::new();
        let mut candidates = Vec::new();
        for child in children {
            if let Some(uid) = parent_of(&keys, &known, &child).filter(|uid| places.contains_key(uid)) {
                *of_parent.entry(uid).or_default() += 1;
                candidates.push((uid.to_owned(), child));
            }
        }
        let now = Duration::from_millis(self.clock.now_ms());
        let next = if drift.after_load {
            BTreeMap::new()
        } else {
            self.writers.next_writes(&places.values().cloned().collect(), now)
        };
        let written = |uid: &str| places.get(uid).and_then(|place| next.get(place).copied());
        let how = if drift.edit.is_some() { "edited" } else { "deleted" };
        let mut done = Done { changed: Vec::new(), drifted: Drifted::default(), aftermath: None };
        let mut taken = Vec::new();
        for (uid, child, until) in chosen(candidates, written, now, drift.share, self.seed, index) {
            if !self.change(&one(&collection, &child), &drift).await? {
                continue;
            }
            done.changed.push(format!("{} {} was {how}", keys.resource, child.place()));
            match until {
                None => done.drifted.unwritten += 1,
                Some(at) => taken.push(Taken {
                    had: of_parent.get(uid.as_str()).copied().unwrap_or_default(),
                    child: child.uid,
                    until_ms: millis(at),
                    parent: uid,
                }),
            }
        }
        done.drifted.children = done.changed.len() as u64;
        if !taken.is_empty() {
            done.aftermath = Some(Aftermath::new(&self, keys, collection, drift.edit, taken));
        }
        Ok(done)
    }

    /// Changes one child. Returns whether the child still existed.
    async fn change(&self, path: &str, drift: &Drift) -> Result<bool> {
        let asked = install::Api::from(&self.api);
        let (status, answer) = match &drift.edit {
            Some(edit) => {
                let patch = Value::Object(edit.clone()).to_string();
                asked.ask_as(Method::PATCH, path, patch, install::JSON, "application/merge-patch+json").await?
            }
            None => asked.ask(Method::DELETE, path, String::new()).await?,
        };
        match status.as_u16() {
            // It disappeared with its parent meanwhile.
            404 => Ok(false),
            _ if status.is_success() => Ok(true),
            _ => bail!("{path}: HTTP {status}: {}", String::from_utf8_lossy(&answer[..answer.len().min(200)])),
        }
    }
}

/// Chooses the children to change; the same seed and children give the same choice. Children of parents without further
/// writes come first, then children of parents that are not written for a while. Each child comes with its parent's uid
/// and the time of the parent's next write.
fn chosen(
    children: Vec<(String, Item)>,
    written: impl Fn(&str) -> Option<Duration>,
    now: Duration,
    share: f64,
    seed: u64,
    index: usize,
) -> Vec<(String, Item, Option<Duration>)> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
    let wanted = (children.len() as f64 * share).ceil() as usize;
    let alone = now.saturating_add(ALONE_FOR);
    let mut left: Vec<(String, Item, Option<Duration>)> = children
        .into_iter()
        .filter_map(|(uid, child)| {
            let next = written(&uid);
            next.is_none_or(|at| at >= alone).then_some((uid, child, next))
        })
        .collect();
    left.sort_by_cached_key(|(_, child, next)| {
        (next.is_some(), Sha256::digest(format!("{seed}/{index}/{}", child.place())))
    });
    left.truncate(wanted.min(CHILDREN_MAX));
    left
}

/// The API path of one object of a collection.
fn one(collection: &str, item: &Item) -> String {
    match (collection.rsplit_once('/'), item.namespace.as_str()) {
        (Some((root, plural)), namespace) if !namespace.is_empty() => {
            format!("{root}/namespaces/{namespace}/{plural}/{}", item.name)
        }
        _ => format!("{collection}/{}", item.name),
    }
}

fn add(a: Drifted, b: Drifted) -> Drifted {
    Drifted {
        children: a.children + b.children,
        unwritten: a.unwritten + b.unwritten,
        restored: a.restored + b.restored,
        overtaken: a.overtaken + b.overtaken,
        gone: a.gone + b.gone,
    }
}

#[cfg(test)]
mod tests;
