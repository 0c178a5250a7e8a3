//! Drift: the harness deletes or edits children of the subject, under load or after it, as a user with kubectl would.
//!
//! Owns the time of each change, the choice of children, the record rows that prove the change, and the observation of
//! children until their parents are written. The end state shows whether all children are right at the end of the run.
//!
//! A restored child proves something only as long as its parent is not written: a subject that watches only parents
//! also restores the child at the next write of the parent. The harness changes children whose parents are not written
//! for a while, and checks whether the subject restores the children in the meantime.

mod aftermath;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hyper::Method;
use loadgen::churn::Api;
use reports::judge::DRIFT;
use reports::record::{Drifted, FaultEvent, FaultRow};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use self::aftermath::{Aftermath, Taken};
use super::end_state::children::{Known, parent_of};
use super::end_state::churned;
use super::end_state::list::{Item, list};
use super::install;
use crate::clock::{Clock, millis};
use crate::scenario::{Children, Drift, Scenario};

/// Maximum number of children of one change, because each child is a separate request.
const CHILDREN_MAX: usize = 1000;
/// Longest wait for the last change after load has ended.
pub(super) const FINISH_MAX: Duration = Duration::from_secs(30);
/// A change avoids parents that the churn writes within this time: the shortest deadline for observations.
const ALONE_FOR: Duration = Duration::from_secs(5);
/// How far ahead the churn's plan is searched for writes of parents, and the longest wait for a restoration.
const AHEAD: Duration = Duration::from_mins(5);

/// The planned and finished changes of a run.
#[derive(Default)]
pub(super) struct Drifts {
    plan: Option<Plan>,
    begun: usize,
    under_way: JoinSet<Result<Done>>,
    /// Tasks that observe changed children.
    watched: JoinSet<Drifted>,
    /// Number of children that were deleted or edited.
    hits: u64,
    drifted: Drifted,
    /// Time at which the load ended; `None` while the load runs.
    loaded_ms: Option<u64>,
}

/// Inputs for all planned changes of children.
#[derive(Clone)]
struct Plan {
    /// All planned changes in the order of their times, each with the index of its kind of children.
    drifts: Vec<(usize, Drift)>,
    kinds: Vec<Children>,
    resource: String,
    path: String,
    seed: u64,
    api: Api,
    clock: Clock,
    writers: Writers,
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
    hits: u64,
    drifted: Drifted,
    aftermath: Option<Aftermath>,
}

impl Drifts {
    pub(super) fn of(scenario: &Scenario, api: Api, clock: Clock) -> Self {
        let plan = || {
            let loaded = scenario.phases.loaded();
            let drifts = Some(scenario.subject.children.drifts(loaded)).filter(|drifts| !drifts.is_empty())?;
            let (resource, path) = churned(scenario)?;
            let kinds = scenario.subject.children.to_vec();
            let writers = Writers::of(scenario, &resource);
            Some(Plan { drifts, kinds, resource, path, seed: scenario.seed, api, clock, writers })
        };
        Self { plan: plan(), ..Self::default() }
    }

    /// The record row with the number of planned changes.
    pub(super) fn planned(&self) -> Option<FaultRow> {
        let plan = self.plan.as_ref()?;
        let all: Vec<String> = plan.drifts.iter().map(|(_, drift)| drift.describe()).collect();
        Some(row(0, FaultEvent::Planned, 0, Some(all.join(", "))))
    }

    /// Time of the last change after the load; `None` if all changes happen under load.
    pub(super) fn last_after_load(&self) -> Option<Duration> {
        let drifts = self.plan.iter().flat_map(|plan| &plan.drifts);
        drifts.filter_map(|(_, drift)| drift.after_load).map(|after| after.0).max()
    }

    /// Begins the changes whose planned time is at or before `now_ms`. Returns the rows of finished changes.
    pub(super) fn tick(&mut self, now_ms: u64) -> Result<Vec<FaultRow>> {
        let Some(plan) = &self.plan else { return Ok(Vec::new()) };
        let mut rows = Vec::new();
        while let Some((kind, drift)) = plan.drifts.get(self.begun).filter(|(_, drift)| self.is_due(drift, now_ms)) {
            if self.begun == 0 {
                rows.push(row(now_ms, FaultEvent::Started, 0, None));
            }
            self.under_way.spawn(plan.clone().act(self.begun, *kind, drift.clone(), drift.after_load.is_some()));
            self.begun += 1;
        }
        while let Some(done) = self.under_way.try_join_next() {
            rows.push(self.done(now_ms, done)?);
        }
        Ok(rows)
    }

    fn is_due(&self, drift: &Drift, now_ms: u64) -> bool {
        match (drift.after_load, self.loaded_ms) {
            (Some(after), Some(loaded_ms)) => now_ms >= loaded_ms.saturating_add(millis(after.0)),
            (Some(_), None) => false,
            (None, _) => now_ms >= millis(drift.at.unwrap_or_default().0),
        }
    }

    /// Marks the load as ended, so that changes planned after the load can begin.
    pub(super) fn load_ended(&mut self, now_ms: u64) {
        self.loaded_ms = Some(now_ms);
    }

    /// Waits for running changes, and returns their rows with the time `now_ms`.
    pub(super) async fn settle(&mut self, now_ms: u64) -> Result<Vec<FaultRow>> {
        let mut rows = self.tick(now_ms)?;
        while let Some(done) = self.under_way.join_next().await {
            rows.push(self.done(now_ms, done)?);
        }
        Ok(rows)
    }

    /// Ends all observations at the end of the run. Returns the results for the children; `None` if no change was
    /// planned.
    pub(super) async fn finish(&mut self, now_ms: u64) -> Result<(Vec<FaultRow>, Option<Drifted>)> {
        let mut rows = self.settle(now_ms).await?;
        while let Some(watched) = self.watched.join_next().await {
            self.drifted = add(self.drifted, watched.context("the children were not observed after the drift")?);
        }
        let planned = self.plan.take().is_some();
        rows.extend(planned.then(|| row(now_ms, FaultEvent::Ended, self.hits, None)));
        Ok((rows, planned.then_some(self.drifted)))
    }

    fn done(&mut self, now_ms: u64, done: Result<Result<Done>, tokio::task::JoinError>) -> Result<FaultRow> {
        let done = done.context("a drift broke")?.context("the harness could not delete or edit the children")?;
        self.hits += done.hits;
        self.drifted = add(self.drifted, done.drifted);
        if let Some(aftermath) = done.aftermath {
            self.watched.spawn(aftermath.watch());
        }
        let detail = format!("{} children were deleted or edited", done.hits);
        Ok(row(now_ms, FaultEvent::Hit, self.hits, Some(detail)))
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
    /// Performs change number `index` on children of one kind. `after_load` says that no parent is written any more.
    async fn act(self, index: usize, kind: usize, drift: Drift, after_load: bool) -> Result<Done> {
        let keys = self.kinds.get(kind).context("no such kind of children")?.clone();
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
        let next = if after_load {
            BTreeMap::new()
        } else {
            self.writers.next_writes(&places.values().cloned().collect(), now)
        };
        let written = |uid: &str| places.get(uid).and_then(|place| next.get(place).copied());
        let mut done = Done { hits: 0, drifted: Drifted::default(), aftermath: None };
        let mut taken = Vec::new();
        for (uid, child, until) in chosen(candidates, written, now, drift.share, self.seed, index) {
            if !self.change(&one(&collection, &child), &drift).await? {
                continue;
            }
            done.hits += 1;
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
        done.drifted.children = done.hits;
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

fn row(t_ms: u64, event: FaultEvent, hits: u64, detail: Option<String>) -> FaultRow {
    FaultRow { t_ms, id: DRIFT.to_owned(), name: DRIFT.to_owned(), event, hits, ok: None, detail }
}

#[cfg(test)]
mod tests;
