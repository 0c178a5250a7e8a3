//! The ledger: commits against observations, online, in bounded memory.
//!
//! Owns the rules that decide the outcome of each version and each observation. The ledger must not read a clock or do
//! I/O. Nor may the ledger compare resourceVersions as numbers unless [`Config::numeric_revisions`] allows it: order
//! comes from the order of commits.
//!
//! # Rules
//!
//! Every commit gets exactly one of: observed, coalesced, late, missed, ghost, late ghost, identity swap, unobservable.
//! `D` is the deadline; `t` is a time of the run.
//!
//! * An observation of version *w* settles *w* and every older unsettled version *v* of the object. *w* is **observed**
//!   if the observation came by `w.t + D`, else **late** (for a deletion: **late ghost**).
//! * *v* is **coalesced** if the observation came by `v.t + D`, or if the next version after *v* was committed before
//!   `v.t + D` and the observation came within `D` of that commit; else **late**. A next version that was committed
//!   after *v* was overdue excuses nothing: the subject was wrong, and only that later write corrected it.
//! * An observation with change `Deleted` proves a deletion whatever revision it carries, because a client that relists
//!   knows only the last revision that it saw. It does not prove a deletion that was committed after it. If the object
//!   is alive, the observation is a **phantom**.
//! * A fault can withhold a version from a watch of the subject and deliver it later on the same watch by itself. Such
//!   a version is due from the time of delivery, which then replaces `t` above ([`Ledger::came`]). If the subject
//!   fetched the version by a list or another watch, the version is due from its commit: a client that receives nothing
//!   has to ask.
//! * At the end, unsettled versions are **missed**, except deletions. A deletion is an **identity swap** if the subject
//!   knew the object and its first report of a new object of the same name was an update; else it is a **ghost**. So an
//!   object that was created and deleted and never observed is one or more missed versions and one ghost. There are
//!   four exceptions:
//! * Versions stay pending if only the subject still wrote when they were committed, and the witness was not read for
//!   `D` after that. A subject works until it is stopped, and its last writes could not be observed in time.
//! * If the object was deleted and the witness cannot report deletions, its versions are **missed** if they were
//!   overdue. They are **unobservable** if they were not overdue, or if a fault may have withheld them from the subject
//!   until then ([`Ledger::kept`]).
//! * If the subject's process ended before the deletion, or before the deletion was overdue, and the new process never
//!   reported the object, its versions that were not overdue are **unobservable**: a list does not show objects that
//!   were deleted before it.
//! * If the object was created and deleted inside a gap that a relist closed, and was never observed, all its versions
//!   are **unobservable**. A gap excuses nothing else.
//!
//! Observations are also counted: **resurrected** if the object's deletion had been observed, else **regressed** if a
//! newer version had been, else **duplicate** if the same process had observed this version, **phantom** if it was
//! never committed. An observation may arrive before its commit; it waits for a grace time, with all later observations
//! of the same object behind it, so that the order of arrival of commits and observations does not matter.
//!
//! # Memory
//!
//! The ledger holds live objects, versions younger than `D`, and bounded rings (see [`Config`]); it does not grow with
//! the run. This file holds the interface and the flow; `objects` settles versions, `held` keeps early observations,
//! `memory` remembers dropped versions and objects by a hash, `gaps` keeps the gaps that relists closed.

use std::collections::VecDeque;

use facts::{Change, Commit, Observation, Order, Revision, Uid};
use statistics::hlog::{self, Histogram};

use held::HeldObservations;
use memory::{Forgotten, Memory};
use objects::{Objects, Settled};
use record::{AnomalyRow, Backlog, CommitEvent, EventCounts};

mod gaps;
mod held;
mod memory;
mod object;
mod objects;
pub mod restart;
mod served;
#[cfg(test)]
mod tests;

pub use objects::believed::Known;

pub use record::Outcome;

/// The default deadline, in milliseconds: several times the slowest healthy delivery seen.
pub const DEADLINE_MS: u64 = 5000;
/// Rows of one outcome that wait between two calls of [`Ledger::advance`]; more are counted but get no row.
const WAITING_ANOMALIES_PER_OUTCOME: usize = 1000;

/// The bounds of a ledger.
#[derive(Debug, Clone)]
pub struct Config {
    /// Time after which an observation is late, in milliseconds.
    pub deadline_ms: u64,
    /// Whether resourceVersions are numbers that rise with the order of commits. True only for the mock control plane.
    pub numeric_revisions: bool,
    /// Whether the witness can carry deletions. If not, a deletion is unobservable, and so are the versions that wait
    /// when it is committed.
    pub deletions_observable: bool,
    /// Time that an observation waits for its commit to become known, in milliseconds.
    pub grace_ms: u64,
    /// How far the clock of commits may be behind that of observations, in milliseconds: on a real control plane a
    /// commit gets the time of the answer to the write.
    pub skew_ms: u64,
    /// Settled versions kept for each object, to recognise them when they come again.
    pub settled_per_object: usize,
    /// Overdue versions kept for each object; older ones are counted but no longer named.
    pub overdue_per_object: usize,
    /// Deleted objects with an overdue deletion; beyond that the oldest is decided before the end of the run.
    pub overdue_deletions: usize,
    /// Deleted and settled objects kept whole.
    pub tombstones: usize,
    /// Versions remembered by a hash after an object dropped them.
    pub forgotten: usize,
    /// Observations that wait for their commit; beyond that the oldest is decided at once.
    pub held: usize,
    /// Gaps kept for each resource.
    pub gaps: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            deadline_ms: DEADLINE_MS,
            numeric_revisions: false,
            deletions_observable: true,
            grace_ms: 2000,
            skew_ms: 250,
            settled_per_object: 8,
            overdue_per_object: 64,
            overdue_deletions: 50_000,
            tombstones: 4096,
            forgotten: 65_536,
            held: 65_536,
            gaps: 1024,
        }
    }
}

/// Compares commits with observations.
#[derive(Debug)]
pub struct Ledger {
    objects: Objects,
    held: HeldObservations,
    memory: Memory,
    config: Config,
    faulted: bool,
    /// Commits in the order of their time, until they are overdue or found settled.
    fresh: VecDeque<Fresh>,
    tally: Tally,
    /// Versions that became overdue since the last [`Ledger::take_overdue`].
    overdue: Vec<CommitEvent>,
}

#[derive(Debug, Clone, Copy)]
struct Fresh {
    t_ms: u64,
    order: Order,
}

/// The ledger's results: counts, histograms and rows.
#[derive(Debug)]
struct Tally {
    counts: EventCounts,
    anomalies: Vec<AnomalyRow>,
    waiting: [usize; Outcome::COUNT],
    unnamed: u64,
    contradictions: u64,
    lag: Histogram,
    lag_faulted: Histogram,
    heal: Histogram,
}

/// The result of comparing an observation with the known versions.
enum Looked {
    Decided,
    /// Its commit is not known yet.
    Unknown,
}

impl Ledger {
    pub fn new(config: Config) -> Self {
        Self {
            objects: Objects::new(&config),
            held: HeldObservations::default(),
            memory: Memory::new(config.forgotten),
            config,
            faulted: false,
            fresh: VecDeque::new(),
            tally: Tally::new(),
            overdue: Vec::new(),
        }
    }

    /// A version was committed, `t_ms` milliseconds into the run. Commits of one object must come in their order; a repeated one is ignored.
    pub fn commit(&mut self, t_ms: u64, commit: &Commit) {
        let inserted = self.objects.insert(t_ms, commit, self.faulted);
        self.inserted(t_ms, commit, &inserted);
    }

    /// An object was deleted, and the witness cannot report its deletion: versions that are not settled in time by then
    /// are unobservable.
    pub fn commit_untold(&mut self, t_ms: u64, commit: &Commit) {
        self.commit(t_ms, commit);
        let why = "it was gone before the witness could show that the subject knew it";
        self.objects.give_up(commit.order, t_ms, why, &mut self.tally);
    }

    /// Versions of an object that were committed at least a deadline ago and wait, oldest first. The caller adds its
    /// knowledge of their delivery (`came`, `kept`) before the next observation, or the end, of the object.
    pub fn overdue_of(&self, uid: &Uid, now_ms: u64) -> Vec<CommitEvent> {
        self.objects.overdue_of(uid, now_ms)
    }

    /// A fault withheld a pending version from the subject and delivered it by itself at `t_ms`.
    pub fn came(&mut self, uid: &Uid, revision: &Revision, t_ms: u64) {
        if let Some(version) = self.objects.pending_mut(uid, revision) {
            version.came_ms = version.came_ms.max(t_ms);
        }
    }

    /// A fault may have withheld a pending version from the subject. The version stays due; only if its object is
    /// deleted unseen, it does not count as missed.
    pub fn kept(&mut self, uid: &Uid, revision: &Revision) {
        if let Some(version) = self.objects.pending_mut(uid, revision) {
            version.kept = true;
        }
    }

    /// The control plane was restored from an older state, and this version, committed long ago, is its object's newest
    /// one again. It has to be observed again. Later versions are undone: they need no observation, and an observation
    /// of one that was on its way is no phantom. An object that was deleted cannot come back: that is a contradiction.
    pub fn restore(&mut self, t_ms: u64, commit: &Commit) {
        self.objects.undo(commit, &mut self.tally);
        self.commit(t_ms, commit);
    }

    fn inserted(&mut self, t_ms: u64, commit: &Commit, inserted: &objects::Inserted) {
        match inserted {
            objects::Inserted::New => {}
            objects::Inserted::Known => return,
            objects::Inserted::Contradiction => {
                self.tally.contradictions += 1;
                return;
            }
        }
        self.tally.counts.commits += 1;
        self.fresh.push_back(Fresh { t_ms, order: commit.order });
        if commit.change == Change::Deleted && !self.config.deletions_observable {
            self.objects.give_up(commit.order, t_ms, "the witness cannot carry deletions", &mut self.tally);
        }
        if self.held.waits(&commit.uid) {
            self.settle_held(&commit.uid);
        }
        self.bury();
    }

    /// Takes an observation: the subject proved that it saw a version.
    pub fn observe(&mut self, observation: &Observation) {
        self.tally.counts.observations += 1;
        // Behind an observation that waits, all later ones of the object wait too, to keep their order.
        let waits = self.held.waits(&observation.uid);
        if waits || matches!(self.look(observation, false), Looked::Unknown) {
            if self.held.len() >= self.config.held {
                self.expire_held(None);
            }
            self.held.push(observation);
        }
        self.bury();
    }

    /// A relist closed a gap in the subject's stream: the subject could not see an object that was both created and
    /// deleted after the commit `after_order` and up to the commit `through_order`.
    pub fn gap(&mut self, resource: &str, after_order: Order, through_order: Order) {
        self.objects.gap(resource, after_order, through_order);
    }

    /// The subject's process ended by itself; see `restart`.
    pub fn subject_ended(&mut self, now_ms: u64) {
        self.objects.subject_ended(now_ms);
    }

    /// A new process of the subject was started.
    pub fn subject_started(&mut self, now_ms: u64) {
        self.objects.subject_started(now_ms);
    }

    /// Sets whether a fault is active: the lag of commits made meanwhile goes to [`Self::take_lag_faulted`].
    pub fn faulted(&mut self, active: bool) {
        self.faulted = active;
    }

    /// Changes the deadline, in milliseconds, of everything that is not settled yet.
    pub fn set_deadline(&mut self, deadline_ms: u64) {
        self.config.deadline_ms = deadline_ms;
        self.objects.deadline_ms = deadline_ms;
    }

    pub fn deadline_ms(&self) -> u64 {
        self.config.deadline_ms
    }

    /// Lets time pass and returns the rows decided since the last call.
    pub fn advance(&mut self, now_ms: u64) -> impl Iterator<Item = AnomalyRow> + use<> {
        self.expire_held(Some(now_ms));
        while let Some(first) = self.fresh.front().copied() {
            if first.t_ms.saturating_add(self.config.deadline_ms) >= now_ms {
                break;
            }
            self.fresh.pop_front();
            if self.overdue.len() < WAITING_ANOMALIES_PER_OUTCOME {
                self.overdue.extend(self.objects.version_of(first.order));
            }
            // An observation that waits may still settle it in time.
            let waits = self.objects.uid_of(first.order).is_some_and(|uid| self.held.waits(&uid));
            self.objects.overdue(first.order, now_ms, waits, &mut self.tally, &mut self.memory);
        }
        self.bury();
        self.tally.hand_out()
    }

    /// Versions that became overdue since the last call, at most 1000. The caller looks up their delivery now, because
    /// that knowledge is dropped before they are decided.
    pub fn take_overdue(&mut self) -> Vec<CommitEvent> {
        std::mem::take(&mut self.overdue)
    }

    /// The run is over and the subject had its time to catch up: decides everything that is not settled.
    pub fn finish(&mut self, now_ms: u64) -> impl Iterator<Item = AnomalyRow> + use<> {
        self.finish_quiet(now_ms, u64::MAX, now_ms)
    }

    /// Like [`Self::finish`], for a run in which only the subject wrote from `quiet_ms` on and whose witness was read
    /// until `heard_ms`: the subject's writes less than a deadline before `heard_ms` stay pending.
    pub fn finish_quiet(
        &mut self,
        now_ms: u64,
        quiet_ms: u64,
        heard_ms: u64,
    ) -> impl Iterator<Item = AnomalyRow> + use<> {
        while self.held.len() > 0 {
            self.expire_held(None);
        }
        self.fresh.clear();
        self.objects.finish(now_ms, quiet_ms.max(heard_ms.saturating_sub(self.objects.deadline_ms)), &mut self.tally);
        self.tally.hand_out()
    }

    /// The outcomes decided so far.
    pub fn counts(&self) -> EventCounts {
        self.tally.counts
    }

    /// Anomalies that were counted but have no row.
    pub fn anomalies_unnamed(&self) -> u64 {
        self.tally.unnamed
    }

    /// Commits that contradict earlier ones (out of order, or after the object's deletion) and were left out. If there
    /// are any, the source of commits is broken, and the run is invalid.
    pub fn contradictions(&self) -> u64 {
        self.tally.contradictions
    }

    /// The lag, in microseconds, of observations since the last call whose commit was made while no fault was active.
    pub fn take_lag(&mut self) -> Histogram {
        take(&mut self.tally.lag)
    }

    /// The lag, in microseconds, of observations since the last call whose commit was made while a fault was active.
    pub fn take_lag_faulted(&mut self) -> Histogram {
        take(&mut self.tally.lag_faulted)
    }

    /// For versions settled late since the last call: the time from their commit to the observation that settled them,
    /// in microseconds.
    pub fn take_heal(&mut self) -> Histogram {
        take(&mut self.tally.heal)
    }

    pub fn live_objects(&self) -> u64 {
        self.objects.live()
    }

    /// Versions that wait for an observation.
    pub fn pending(&self) -> u64 {
        self.objects.pending()
    }

    /// Objects that wait at `to_ms` since before `from_ms`, the time from which only the subject wrote. One row for
    /// each resource that has any.
    pub fn backlogs(&self, from_ms: u64, to_ms: u64) -> Vec<Backlog> {
        self.objects.backlogs(from_ms, to_ms)
    }

    /// Pending versions that are past the deadline: they will be late, missed or ghosts.
    pub fn overdue(&self) -> u64 {
        self.objects.overdue_versions()
    }

    /// Whether every version up to a commit is settled, for probes after a fault.
    pub fn settled_through(&self, order: Order) -> bool {
        self.objects.settled_through(order)
    }

    /// The time from the commit of a version to the observation that settled it, in milliseconds; none if it is not
    /// settled, or was settled longer ago than the ledger remembers. A restored control plane issues revisions again:
    /// then the latest version counts.
    pub fn resolved(&self, uid: &Uid, revision: &Revision) -> Option<u64> {
        self.objects.resolved(uid, revision)
    }

    /// The objects that the subject reported and did not report as deleted: its view of the world, as far as the
    /// witness shows it. Observations that wait for their commit are not in it.
    pub fn believed(&self) -> Vec<Known> {
        self.objects.believed()
    }

    /// Entries of all kinds held in memory; the bounds of [`Config`] limit them.
    pub fn footprint(&self) -> usize {
        self.objects.footprint() + self.held.len() + self.fresh.len() + self.memory.len() + self.tally.anomalies.len()
    }

    /// Compares an observation with the known versions. With `last_chance` it is decided in any case.
    fn look(&mut self, observation: &Observation, last_chance: bool) -> Looked {
        let forgotten = self.memory.recall(&observation.uid, &observation.revision);
        let settled = match observation.change {
            Change::Deleted => self.objects.observe_deletion(observation, &mut self.tally, &mut self.memory),
            _ => self.objects.observe_version(observation, forgotten, &mut self.tally, &mut self.memory),
        };
        match (settled, last_chance) {
            (Settled::Yes, _) => return Looked::Decided,
            (Settled::Unknown, false) => {
                if !self.objects.knows(&observation.uid) && self.look_at_dead(observation) {
                    return Looked::Decided;
                }
                return Looked::Unknown;
            }
            (Settled::Unknown, true) => {}
        }
        let detail = match (observation.change, self.objects.knows(&observation.uid)) {
            (Change::Deleted, true) => "reported as deleted while it was alive",
            (_, true) => "no such version of this object was committed",
            (_, false) => "no object with this uid was committed",
        };
        let anomaly = self.objects.anomaly_of(observation, Outcome::Phantom, detail);
        self.tally.row(anomaly);
        Looked::Decided
    }

    /// An observation of an object that was deleted so long ago that only hashes are left of it.
    fn look_at_dead(&mut self, observation: &Observation) -> bool {
        if self.memory.recall_dead(&observation.uid).is_none() {
            return false;
        }
        let (outcome, detail) = match (observation.change, self.memory.recall(&observation.uid, &observation.revision))
        {
            (Change::Deleted, _) => (Outcome::Duplicate, "deleted and settled long ago"),
            (_, Some(Forgotten { .. })) => (Outcome::Resurrected, "deleted and settled long ago"),
            (_, None) => return false,
        };
        let anomaly = self.objects.anomaly_of(observation, outcome, detail);
        self.tally.row(anomaly);
        true
    }

    /// After a commit of the object: decides the observations that waited for it, in their order.
    fn settle_held(&mut self, uid: &Uid) {
        while let Some(first) = self.held.take_first(uid) {
            if matches!(self.look(&first.observation, false), Looked::Unknown) {
                self.held.put_back(first);
                break;
            }
        }
    }

    /// Decides observations whose grace is over; without a time, the oldest one.
    fn expire_held(&mut self, now_ms: Option<u64>) {
        let before = match now_ms.map(|now_ms| now_ms.checked_sub(self.config.grace_ms)) {
            // The run is younger than the grace: no grace can be over.
            Some(None) => return,
            Some(before) => before,
            None => None,
        };
        while let Some(first) = self.held.take_expired(before) {
            self.look(&first.observation, true);
            self.settle_held(&first.observation.uid);
            if now_ms.is_none() {
                break;
            }
        }
    }

    /// Drops deleted objects beyond the bounds and keeps their hashes.
    fn bury(&mut self) {
        self.objects.bury(&mut self.tally, &mut self.memory);
    }
}

impl Tally {
    fn new() -> Self {
        // One microsecond to a day, three digits; the histogram grows by itself beyond that.
        let histogram = || {
            let mut histogram = Histogram::new_with_bounds(1, 24 * 3600 * 1_000_000, 3)
                .expect("1 to a day with three digits are valid bounds");
            histogram.auto(true);
            histogram
        };
        Self {
            counts: EventCounts::default(),
            anomalies: Vec::new(),
            waiting: [0; Outcome::COUNT],
            unnamed: 0,
            contradictions: 0,
            lag: histogram(),
            lag_faulted: histogram(),
            heal: histogram(),
        }
    }

    /// Counts an outcome that has no row of its own.
    fn count(&mut self, outcome: Outcome, times: u64) {
        *outcome.of_mut(&mut self.counts) += times;
    }

    /// Counts an outcome and keeps its row, up to the bound.
    fn row(&mut self, anomaly: AnomalyRow) {
        self.count(anomaly.outcome, 1);
        let waiting = &mut self.waiting[anomaly.outcome as usize];
        if *waiting >= WAITING_ANOMALIES_PER_OUTCOME {
            self.unnamed += 1;
            return;
        }
        *waiting += 1;
        self.anomalies.push(anomaly);
    }

    fn lag(&mut self, faulted: bool, lag_ms: u64) {
        let histogram = if faulted { &mut self.lag_faulted } else { &mut self.lag };
        hlog::record(histogram, lag_ms.saturating_mul(1000));
    }

    fn heal(&mut self, lag_ms: u64) {
        hlog::record(&mut self.heal, lag_ms.saturating_mul(1000));
    }

    fn hand_out(&mut self) -> std::vec::IntoIter<AnomalyRow> {
        self.waiting = [0; Outcome::COUNT];
        std::mem::take(&mut self.anomalies).into_iter()
    }
}

fn take(histogram: &mut Histogram) -> Histogram {
    let empty = Histogram::new_from(histogram);
    std::mem::replace(histogram, empty)
}
