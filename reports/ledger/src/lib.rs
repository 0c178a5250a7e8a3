//! The ledger compares commits with observations while the run is under way, in bounded memory.
//!
//! Owns the rules that decide the outcome of each version and each observation of a run. The ledger reads no clock and
//! does no I/O. Unless [`Config::numeric_revisions`] is set, it does not compare resourceVersions as numbers; the order
//! of versions is the order of commits.
//!
//! # Rules
//!
//! Every commit gets exactly one of these outcomes: observed, coalesced, late, missed, ghost, late ghost, identity
//! swap, unobservable. `D` is the deadline of the ledger; `v.t` is the time at which version `v` was committed.
//!
//! * An observation of version *w* settles *w* and every older unsettled version *v* of the object. *w* is **observed**
//!   if the observation came by `w.t + D`, else **late** (for a deletion: **late ghost**).
//! * *v* is **coalesced** if the observation came by `v.t + D`, or if the next version was committed before `v.t + D`
//!   and the observation came within `D` of that commit; else *v* is **late**. A next version that was committed after
//!   *v* was overdue excuses nothing: the subject was wrong, and only the later write corrected it.
//! * An observation with change `Deleted` proves a deletion, whatever revision it carries: a client that relists knows
//!   only the last revision that it saw. An observation of a deletion proves no deletion that was committed after the
//!   observation. An observation of a deletion is a **phantom** if the object still exists.
//! * A fault can withhold a version from a watch of the subject and deliver the version later on the same watch: then
//!   the deadline starts with the delivery ([`Ledger::came`]). If the subject fetched a withheld version by a list or
//!   another watch, the deadline starts with the commit: a client that receives nothing has to ask.
//! * At the end, unsettled versions are **missed**, except deletions. A deletion is an **identity swap** if the subject
//!   knew the object, and its first report of a new object of the same name was an update; else a deletion that was
//!   never observed is a **ghost**. An object that was created, deleted and never observed is therefore one or more
//!   missed versions and one ghost. Four exceptions follow:
//! * Versions stay pending if only the subject still wrote when they were committed, and the witness was not read for
//!   `D` after the commit. A subject works until it is stopped, and its last writes cannot be observed in time.
//! * If an object was deleted and the witness cannot report deletions, its overdue versions are **missed**. Versions of
//!   a deleted object that were not overdue are **unobservable**, and so are overdue versions that a fault may have
//!   withheld from the subject until the deletion ([`Ledger::kept`]). If the object was deleted while it waited in the
//!   subject's queue, its overdue versions are **unobservable** as well: the subject served other objects in that time, and
//!   the new objects among them had waited about as long. The same holds if a write of the subject to the object was
//!   refused with a status after which a right client tries again, less than `D` before the deletion
//!   ([`Ledger::refused`]).
//! * If the subject's process ended before a deletion, or before the deletion was overdue, the object's versions that
//!   were not overdue are **unobservable**: the next process lists, and a list does not show objects that were deleted
//!   before it.
//! * If an object was created and deleted inside a gap that a relist closed, and was never observed, all its versions
//!   are **unobservable**. A gap excuses no other version.
//!
//! Observations have outcomes as well. An observation is **resurrected** if the object's deletion had been observed,
//! else **regressed** if a newer version had been, else **duplicate** if the same process had observed this version,
//! and **phantom** if the version was never committed. An observation that arrives before its commit waits for a grace
//! time, with all later observations of its object behind it, so that the order in which commits and observations
//! arrive does not matter.
//!
//! # Memory
//!
//! The ledger holds live objects, versions younger than `D`, and bounded rings (see [`Config`]). The ledger's memory
//! does not grow with the run. This file has the public functions of the ledger, and the order in which it processes a
//! commit or an observation. `objects` settles versions, `held` keeps early observations, `memory` remembers dropped
//! versions and objects by a hash, and `gaps` keeps the gaps that relists closed.

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
/// Maximum number of anomaly rows of one outcome that wait between two calls of [`Ledger::advance`]. Anomalies beyond
/// this number are counted but get no row in the record.
const WAITING_ANOMALIES_PER_OUTCOME: usize = 1000;

/// The bounds of a ledger.
#[derive(Debug, Clone)]
pub struct Config {
    /// Time after which an observation is late, in milliseconds.
    pub deadline_ms: u64,
    /// Whether resourceVersions are numbers that rise with the order of commits. Only the mock control plane has such
    /// resourceVersions.
    pub numeric_revisions: bool,
    /// Whether the witness can report deletions. If the witness cannot report deletions, a deletion is unobservable,
    /// and so are versions that still wait when the deletion is committed.
    pub deletions_observable: bool,
    /// How long an observation waits for its commit to become known, in milliseconds.
    pub grace_ms: u64,
    /// How far the clock of commits may be behind the clock of observations, in milliseconds. On a real control plane
    /// the time of a commit is the time of the answer to the write.
    pub skew_ms: u64,
    /// Maximum number of settled versions kept for each object, so that a repeated observation of such a version is
    /// recognised.
    pub settled_per_object: usize,
    /// Maximum number of overdue versions kept for each object. Overdue versions that are older are only counted.
    pub overdue_per_object: usize,
    /// Maximum number of deleted objects with an overdue deletion. With more such objects, the outcome of the oldest
    /// deletion is decided before the end of the run.
    pub overdue_deletions: usize,
    /// Maximum number of deleted and settled objects that are kept with all details.
    pub tombstones: usize,
    /// Maximum number of versions remembered by a hash after an object dropped them.
    pub forgotten: usize,
    /// Maximum number of observations that wait for their commit. With more waiting observations, the outcome of the
    /// oldest one is decided at once.
    pub held: usize,
    /// Maximum number of gaps kept for each resource.
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
    /// Commits in the order of their time, until they are overdue or found to be settled.
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

/// The ledger's results: counts of outcomes, histograms of lag and rows of anomalies.
#[derive(Debug)]
struct Tally {
    counts: EventCounts,
    anomalies: Vec<AnomalyRow>,
    waiting: [usize; Outcome::COUNT],
    contradictions: u64,
    lag: Histogram,
    lag_faulted: Histogram,
    heal: Histogram,
}

/// The result of comparing an observation with the known versions.
enum Looked {
    Decided,
    /// The commit of the observation is not known yet.
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

    /// Takes a commit, made `t_ms` milliseconds into the run. Commits of one object must come in the order in which
    /// they were made; a repeated commit is ignored.
    pub fn commit(&mut self, t_ms: u64, commit: &Commit) {
        let inserted = self.objects.insert(t_ms, commit, self.faulted);
        self.inserted(t_ms, commit, &inserted);
    }

    /// Takes a commit that deletes an object, if the witness cannot report the deletion. Versions of the object that
    /// are neither settled nor overdue at the deletion are unobservable.
    pub fn commit_untold(&mut self, t_ms: u64, commit: &Commit) {
        self.commit(t_ms, commit);
        let why = "it was gone before the witness could show that the subject knew it";
        self.objects.give_up(commit.order, t_ms, why, &mut self.tally);
    }

    /// Versions of an object that were committed at least a deadline ago and still wait, oldest first. Before the
    /// object's next observation or its deletion, the caller adds the control plane's facts about the delivery of the
    /// versions (`came`, `kept`).
    pub fn overdue_of(&self, uid: &Uid, now_ms: u64) -> Vec<CommitEvent> {
        self.objects.overdue_of(uid, now_ms)
    }

    /// Notes that a fault withheld a pending version from the subject and delivered it at `t_ms` without a request.
    pub fn came(&mut self, uid: &Uid, revision: &Revision, t_ms: u64) {
        if let Some(version) = self.objects.pending_mut(uid, revision) {
            version.came_ms = version.came_ms.max(t_ms);
        }
    }

    /// Notes that a fault may have withheld a pending version from the subject. The subject still has to observe the
    /// version. If the object is deleted first, the version does not count as missed.
    pub fn kept(&mut self, uid: &Uid, revision: &Revision) {
        if let Some(version) = self.objects.pending_mut(uid, revision) {
            version.kept = true;
        }
    }

    /// Notes that the API server refused a write of the subject to the newest object of this name at `t_ms`, with a
    /// status after which a right client tries again. If the object is deleted within a deadline, its overdue versions do
    /// not count as missed.
    pub fn refused(&mut self, resource: &str, namespace: &str, name: &str, t_ms: u64) {
        let (resource, namespace, name) = (resource.into(), namespace.into(), name.into());
        self.objects.refused(&object::FullName { resource, namespace, name }, t_ms);
    }

    /// Notes that the control plane was restored from an older state, in which the version of `commit` is its object's
    /// newest version. The subject has to observe a restored version again. Versions that a restore undid need no
    /// observation, and an observation of an undone version is no phantom. A deleted object cannot exist again; a
    /// commit that says so is a contradiction.
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

    /// Takes an observation: proof that the subject saw a version.
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

    /// Notes a gap in the subject's watch, which a relist closed: the commits after `after_order` up to
    /// `through_order`. The subject could not see an object that was both created and deleted in the gap.
    pub fn gap(&mut self, resource: &str, after_order: Order, through_order: Order) {
        self.objects.gap(resource, after_order, through_order);
    }

    /// Notes that the subject's process ended by itself; the module `restart` has the rules that follow from this.
    pub fn subject_ended(&mut self, now_ms: u64) {
        self.objects.subject_ended(now_ms);
    }

    pub fn subject_started(&mut self, now_ms: u64) {
        self.objects.subject_started(now_ms);
    }

    /// Sets whether a fault is active. During a fault, the lag of commits goes to [`Self::take_lag_faulted`].
    pub fn faulted(&mut self, active: bool) {
        self.faulted = active;
    }

    /// Changes the deadline, in milliseconds, of all unsettled versions.
    pub fn set_deadline(&mut self, deadline_ms: u64) {
        self.config.deadline_ms = deadline_ms;
        self.objects.deadline_ms = deadline_ms;
    }

    pub fn deadline_ms(&self) -> u64 {
        self.config.deadline_ms
    }

    /// Advances the ledger's time to `now_ms`, and returns the anomalies decided since the last call.
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

    /// Versions that became overdue since the last call, at most 1000. The caller must look up the delivery of these
    /// versions at once, because the control plane forgets it before their outcomes are decided.
    pub fn take_overdue(&mut self) -> Vec<CommitEvent> {
        std::mem::take(&mut self.overdue)
    }

    /// Ends the run: decides the outcomes of all unsettled versions. Before the end of the run, the drain phase gave
    /// the subject time to catch up.
    pub fn finish(&mut self, now_ms: u64) -> impl Iterator<Item = AnomalyRow> + use<> {
        self.finish_quiet(now_ms, u64::MAX, now_ms)
    }

    /// Like [`Self::finish`], for a run in which only the subject wrote from `quiet_ms` on, and whose witness was read
    /// until `heard_ms`. Writes of the subject less than a deadline before `heard_ms` stay pending.
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

    /// The number of versions and observations with each outcome decided so far.
    pub fn counts(&self) -> EventCounts {
        self.tally.counts
    }

    /// Commits that contradict earlier ones (out of order, or after the object's deletion) and were ignored.
    /// Contradictory commits show that their source is faulty, and the run is invalid.
    pub fn contradictions(&self) -> u64 {
        self.tally.contradictions
    }

    /// The lag, in microseconds, of observations since the last call. Only commits made while no fault was active are
    /// included.
    pub fn take_lag(&mut self) -> Histogram {
        take(&mut self.tally.lag)
    }

    /// The lag, in microseconds, of observations since the last call. Only commits made while a fault was active are
    /// included.
    pub fn take_lag_faulted(&mut self) -> Histogram {
        take(&mut self.tally.lag_faulted)
    }

    /// The time from commit to the settling observation, in microseconds, for versions settled late since the last
    /// call.
    pub fn take_heal(&mut self) -> Histogram {
        take(&mut self.tally.heal)
    }

    pub fn live_objects(&self) -> u64 {
        self.objects.live()
    }

    /// Number of versions that wait for an observation.
    pub fn pending(&self) -> u64 {
        self.objects.pending()
    }

    /// Objects that wait at `to_ms` and have waited since before `from_ms`, the time from which only the subject wrote.
    /// Each resource with waiting objects has one row.
    pub fn backlogs(&self, from_ms: u64, to_ms: u64) -> Vec<Backlog> {
        self.objects.backlogs(from_ms, to_ms)
    }

    /// Number of pending versions whose deadline has passed: such versions will be late, missed or ghosts.
    pub fn overdue(&self) -> u64 {
        self.objects.overdue_versions()
    }

    /// Whether all versions up to a commit are settled. Probes after a fault use this function.
    pub fn settled_through(&self, order: Order) -> bool {
        self.objects.settled_through(order)
    }

    /// The time from the commit of a version to the observation that settled it, in milliseconds. None if the version
    /// is not settled, or was settled so long ago that the ledger forgot it. If a restored control plane issued the
    /// same revision twice, the latest version with the revision counts.
    pub fn resolved(&self, uid: &Uid, revision: &Revision) -> Option<u64> {
        self.objects.resolved(uid, revision)
    }

    /// The objects that the subject reported and did not report as deleted: the subject's view, as far as the witness
    /// shows it. Objects whose observations wait for their commit are not included.
    pub fn believed(&self) -> Vec<Known> {
        self.objects.believed()
    }

    /// Number of entries of all kinds that the ledger holds in memory; the bounds of [`Config`] limit it.
    pub fn footprint(&self) -> usize {
        self.objects.footprint() + self.held.len() + self.fresh.len() + self.memory.len() + self.tally.anomalies.len()
    }

    /// Compares an observation with the known versions. With `last_chance` the observation is decided even if its
    /// commit is unknown.
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

    /// Decides an observation of an object that was deleted so long ago that only hashes of it are left.
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

    /// After a commit of an object, decides the observations that waited for the commit, in their order.
    fn settle_held(&mut self, uid: &Uid) {
        while let Some(first) = self.held.take_first(uid) {
            if matches!(self.look(&first.observation, false), Looked::Unknown) {
                self.held.put_back(first);
                break;
            }
        }
    }

    /// Decides observations whose grace time is over at `now_ms`; without a time, decides the oldest observation.
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

    /// Drops deleted objects beyond the bounds of [`Config`], and keeps their hashes.
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
            contradictions: 0,
            lag: histogram(),
            lag_faulted: histogram(),
            heal: histogram(),
        }
    }

    /// Counts an outcome that gets no row in the record.
    fn count(&mut self, outcome: Outcome, times: u64) {
        *outcome.of_mut(&mut self.counts) += times;
    }

    /// Counts an anomaly, and keeps its row unless too many rows of this outcome wait.
    fn row(&mut self, anomaly: AnomalyRow) {
        self.count(anomaly.outcome, 1);
        let waiting = &mut self.waiting[anomaly.outcome as usize];
        if *waiting >= WAITING_ANOMALIES_PER_OUTCOME {
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
