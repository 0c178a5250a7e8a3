//! All objects of the ledger, and how their versions are settled.
//!
//! Owns every live object, the deleted objects that are not settled or were settled recently, and the rules that settle
//! versions. [`super::Config`] bounds the memory. Every loop over many objects goes in the order of commits, so that
//! the order of a hash map has no effect on results.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;

use super::gaps::Gaps;
use super::memory::{Forgotten, Memory};
use super::object::{Collapsed, Deletion, FullName, Object, Version, due_ms, row_of};
use super::restart::Restart;
use super::served::Served;
use super::{Config, Outcome, Tally};
use facts::{Change, Commit, Observation, Order, Revision, Uid};
use record::{AnomalyRow, CommitEvent};

mod backlogs;
pub mod believed;
mod given_up;

/// Maximum number of versions of one object that a restore undid and that the ledger remembers. An observation of a
/// version beyond this number counts as a phantom, which is one wrong row in the record.
const UNDONE_PER_OBJECT: usize = 1024;
/// Why a version is not missed although the subject has not reported it.
const WAITS: &str =
    "writes of the subject to its object were refused many times in a row, and it may still wait before the next one";

#[derive(Debug)]
pub(super) struct Objects {
    pub deadline_ms: u64,
    by_uid: HashMap<Uid, Object>,
    by_name: HashMap<FullName, Uid>,
    /// Every unsettled version by its number in the order of commits, with the uid of its object.
    open: BTreeMap<Order, Uid>,
    overdue_deletions: BTreeSet<Order>,
    /// Deleted objects that may have waited in the subject's queue, oldest deletion first.
    postponed: VecDeque<given_up::Postponed>,
    /// Deleted objects without open versions, oldest first.
    tombstones: VecDeque<Uid>,
    gaps: Gaps,
    served: Served,
    restart: Option<Restart>,
    live: u64,
    /// Number of overdue versions that are kept with their revision.
    overdue: u64,
    /// Number of overdue versions that are only counted.
    collapsed: u64,
    bounds: Bounds,
}

#[derive(Debug, Clone, Copy)]
struct Bounds {
    numeric_revisions: bool,
    skew_ms: u64,
    settled_per_object: usize,
    overdue_per_object: usize,
    overdue_deletions: usize,
    tombstones: usize,
}

/// The result of [`Objects::insert`], for a commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    New,
    Known,
    Contradiction,
}

/// The result of comparing an observation with an object's versions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Yes,
    Unknown,
}

impl Objects {
    pub fn new(config: &Config) -> Self {
        Self {
            deadline_ms: config.deadline_ms,
            by_uid: HashMap::new(),
            by_name: HashMap::new(),
            open: BTreeMap::new(),
            overdue_deletions: BTreeSet::new(),
            postponed: VecDeque::new(),
            tombstones: VecDeque::new(),
            gaps: Gaps::new(config.gaps.max(1)),
            served: Served::default(),
            restart: None,
            live: 0,
            overdue: 0,
            collapsed: 0,
            bounds: Bounds {
                numeric_revisions: config.numeric_revisions,
                skew_ms: config.skew_ms,
                // At least the newest one must be kept: without it a duplicate looks like a phantom.
                settled_per_object: config.settled_per_object.max(1),
                overdue_per_object: config.overdue_per_object.max(1),
                overdue_deletions: config.overdue_deletions,
                tombstones: config.tombstones,
            },
        }
    }

    pub fn live(&self) -> u64 {
        self.live
    }

    pub fn pending(&self) -> u64 {
        self.open.len() as u64 + self.collapsed
    }

    pub fn overdue_versions(&self) -> u64 {
        self.overdue + self.collapsed
    }

    pub fn knows(&self, uid: &Uid) -> bool {
        self.by_uid.contains_key(uid)
    }

    pub fn uid_of(&self, order: Order) -> Option<Uid> {
        self.open.get(&order).cloned()
    }

    pub fn version_of(&self, order: Order) -> Option<CommitEvent> {
        let uid = self.open.get(&order)?;
        let object = self.by_uid.get(uid)?;
        let version = object.pending.iter().find(|version| version.order == order)?;
        Some(version.event(&object.full_name, uid))
    }

    /// Versions of an object that were committed at least a deadline ago and still wait, oldest first; empty if the
    /// object is not known.
    pub fn overdue_of(&self, uid: &Uid, now_ms: u64) -> Vec<CommitEvent> {
        let Some(object) = self.by_uid.get(uid) else { return Vec::new() };
        let waits = |version: &&Version| version.t_ms.saturating_add(self.deadline_ms) < now_ms;
        object.pending.iter().take_while(waits).map(|version| version.event(&object.full_name, uid)).collect()
    }

    pub fn pending_mut(&mut self, uid: &Uid, revision: &Revision) -> Option<&mut Version> {
        self.by_uid.get_mut(uid)?.pending.iter_mut().find(|version| version.revision == *revision)
    }

    pub fn settled_through(&self, order: Order) -> bool {
        // Collapsed versions are older than an open one of their object, but their own orders are not kept.
        self.collapsed == 0 && self.open.first_key_value().is_none_or(|(first, _)| *first > order)
    }

    pub fn resolved(&self, uid: &Uid, revision: &Revision) -> Option<u64> {
        let object = self.by_uid.get(uid)?;
        object.settled.iter().rev().find(|version| version.revision == *revision).map(|version| version.lag_ms)
    }

    pub fn footprint(&self) -> usize {
        let versions: usize = self
            .by_uid
            .values()
            .map(|object| 1 + object.pending.len() + object.settled.len() + object.undone.len())
            .sum();
        let queued = self.overdue_deletions.len() + self.postponed.len() + self.served.footprint();
        versions + self.open.len() + queued + self.tombstones.len() + self.gaps.len()
    }

    pub fn gap(&mut self, resource: &str, after_order: Order, through_order: Order) {
        self.gaps.push(resource, after_order, through_order);
    }

    /// Notes that a process of the subject ended. Deletions that this process had not reported yet will not be
    /// reported.
    pub fn subject_ended(&mut self, now_ms: u64) {
        self.restart = Some(Restart::ended(now_ms));
        for uid in self.open.values() {
            let Some(deletion) = self.by_uid.get_mut(uid).and_then(|object| object.deletion.as_mut()) else { continue };
            if deletion.t_ms.saturating_add(self.deadline_ms) >= now_ms {
                deletion.hidden_ms.get_or_insert(now_ms);
            }
        }
    }

    pub fn subject_started(&mut self, now_ms: u64) {
        self.restart.iter_mut().for_each(|restart| restart.started(now_ms));
    }

    /// Notes that the API server refused a write of the subject to the newest object of this name.
    pub fn refused(&mut self, full_name: &FullName, t_ms: u64) {
        if let Some(object) = self.by_name.get(full_name).and_then(|uid| self.by_uid.get_mut(uid)) {
            object.refused_ms = object.refused_ms.max(Some(t_ms));
            object.refused_times += 1;
        }
    }

    /// Notes that the subject reported an object. Returns whether a new process reports this object for the first time.
    fn told_of(&mut self, seen: &Observation) -> bool {
        self.by_uid.get_mut(&seen.uid).into_iter().for_each(|object| object.refused_times = 0);
        let Some(restart) = &mut self.restart else {
            self.by_uid.get_mut(&seen.uid).into_iter().for_each(|object| object.told_ms = Some(seen.t_ms));
            return false;
        };
        restart.note_report(seen.t_ms, self.deadline_ms);
        let Some(object) = self.by_uid.get_mut(&seen.uid) else { return false };
        let before_ms = object.told_ms.replace(seen.t_ms);
        if !restart.is_after(seen.t_ms) {
            return false;
        }
        // The new process knows the object, so it has to see its deletion.
        object.deletion.iter_mut().for_each(|deletion| deletion.hidden_ms = None);
        before_ms.is_none_or(|before_ms| !restart.is_after(before_ms))
    }

    pub fn insert(&mut self, t_ms: u64, commit: &Commit, faulted: bool) -> Inserted {
        if let Some(object) = self.by_uid.get(&commit.uid) {
            if object.has_revision(&commit.revision) {
                return Inserted::Known;
            }
            if object.deletion.is_some() || commit.order <= object.newest_committed {
                return Inserted::Contradiction;
            }
        }
        if self.open.contains_key(&commit.order) {
            return Inserted::Contradiction;
        }
        let uid = self.ensure_object(commit);
        let object = self.by_uid.get_mut(&uid).expect("the object was just found or made");
        object.newest_committed = commit.order;
        if commit.change == Change::Deleted {
            self.live -= 1;
            let (revision, order) = (commit.revision.clone(), commit.order);
            let hidden = self.restart.filter(|restart| restart.hides(t_ms, object.told_ms));
            let hidden_ms = hidden.map(|restart| restart.ended_ms);
            object.deletion = Some(Deletion { revision, t_ms, order, settled: false, hidden_ms });
        }
        let (revision, order, change) = (commit.revision.clone(), commit.order, commit.change);
        object.pending.push_back(Version { revision, order, t_ms, came_ms: t_ms, kept: false, change, faulted });
        self.open.insert(commit.order, uid);
        Inserted::New
    }

    /// Forgets the commits of the restored version and of all later versions of its object. The caller then commits the
    /// restored version again.
    pub fn undo(&mut self, restored: &Commit, tally: &mut Tally) {
        let Some(object) = self.by_uid.get_mut(&restored.uid).filter(|object| object.deletion.is_none()) else {
            return;
        };
        let original =
            object.settled.iter().find(|version| version.revision == restored.revision).map(|version| version.order);
        object.settled.retain(|version| original.is_some_and(|original| version.order < original));
        for version in object.pending.drain(..) {
            self.open.remove(&version.order);
            tally.count(Outcome::Coalesced, 1);
            object.undone.push_back(version.revision);
        }
        let surplus = object.undone.len().saturating_sub(UNDONE_PER_OBJECT);
        object.undone.drain(..surplus);
        self.overdue = self.overdue.saturating_sub(std::mem::take(&mut object.overdue) as u64);
    }

    fn ensure_object(&mut self, commit: &Commit) -> Uid {
        if let Some((uid, _)) = self.by_uid.get_key_value(&commit.uid) {
            return uid.clone();
        }
        let uid = commit.uid.clone();
        let full_name = FullName {
            resource: commit.resource.clone(),
            namespace: commit.namespace.clone(),
            name: commit.name.clone(),
        };
        let predecessor = self.by_name.insert(full_name.clone(), uid.clone());
        self.live += 1;
        let object = Object {
            full_name,
            pending: VecDeque::new(),
            overdue: 0,
            collapsed: Collapsed::default(),
            settled: VecDeque::new(),
            undone: VecDeque::new(),
            dropped: false,
            newest_seen: None,
            last_told: None,
            told_ms: None,
            refused_ms: None,
            refused_times: 0,
            newest_committed: commit.order,
            created: (commit.change == Change::Added).then_some(commit.order),
            first_revision: commit.revision.as_str().parse().ok(),
            deletion: None,
            predecessor,
            swapped: false,
        };
        self.by_uid.insert(uid.clone(), object);
        uid
    }

    /// Takes an observation of a version that is not a deletion.
    pub fn observe_version(
        &mut self,
        seen: &Observation,
        forgotten: Option<Forgotten>,
        tally: &mut Tally,
        memory: &mut Memory,
    ) -> Settled {
        let is_first = self.told_of(seen);
        let Some(object) = self.by_uid.get_mut(&seen.uid) else { return Settled::Unknown };
        if let Some(index) = object.pending.iter().position(|version| version.revision == seen.revision) {
            if object.pending[index].change == Change::Deleted {
                let anomaly =
                    object.anomaly(seen, Outcome::Phantom, "the revision of the deletion, but not as deleted");
                tally.row(anomaly);
                return Settled::Yes;
            }
            self.settle_through(seen, index, tally, memory);
            return Settled::Yes;
        }
        // The report was on its way when the restore took the version back; it proves nothing now.
        if let Some(index) = object.undone.iter().position(|revision| *revision == seen.revision) {
            object.undone.remove(index);
            return Settled::Yes;
        }
        let known =
            object.settled.iter().find(|version| version.revision == seen.revision).map(|version| version.order);
        let Some(order) = known.or(forgotten.map(|version| version.order)) else {
            if self.bounds.numeric_revisions && object.may_have_dropped(&seen.revision) {
                let outcome = if object.deletion_settled() { Outcome::Resurrected } else { Outcome::Regressed };
                tally.row(object.anomaly(seen, outcome, "a version from before what the ledger remembers"));
                return Settled::Yes;
            }
            return Settled::Unknown;
        };
        object.last_told = Some(order);
        if object.deletion_settled() {
            tally.row(object.anomaly(seen, Outcome::Resurrected, "observed again after its deletion was observed"));
        } else if object.newest_seen.is_none_or(|newest| newest < order) {
            // A version that was only counted, because too many versions of this object were overdue.
            object.newest_seen = Some(order);
            object.collapsed.count = object.collapsed.count.saturating_sub(1);
            self.collapsed = self.collapsed.saturating_sub(1);
            tally.row(object.anomaly(seen, Outcome::Late, "one of many overdue versions of this object"));
        } else if object.newest_seen == Some(order) && is_first {
            // Another process reported the version before.
        } else if object.newest_seen == Some(order) {
            tally.row(object.anomaly(seen, Outcome::Duplicate, ""));
        } else {
            tally.row(object.anomaly(seen, Outcome::Regressed, "a newer version had been observed before"));
        }
        Settled::Yes
    }

    pub fn observe_deletion(&mut self, seen: &Observation, tally: &mut Tally, memory: &mut Memory) -> Settled {
        self.told_of(seen);
        let Some(object) = self.by_uid.get(&seen.uid) else { return Settled::Unknown };
        let Some(deletion) = &object.deletion else { return Settled::Unknown };
        if deletion.settled {
            tally.row(object.anomaly(seen, Outcome::Duplicate, ""));
            return Settled::Yes;
        }
        // A client that relists reports the last revision it knew, but it cannot report a deletion before the deletion
        // happens.
        if deletion.revision != seen.revision && seen.t_ms.saturating_add(self.bounds.skew_ms) < deletion.t_ms {
            return Settled::Unknown;
        }
        self.settle_through(seen, object.pending.len() - 1, tally, memory);
        Settled::Yes
    }

    /// Settles the pending version at `index` as observed, and all earlier versions as superseded.
    fn settle_through(&mut self, seen: &Observation, index: usize, tally: &mut Tally, memory: &mut Memory) {
        let object = self.by_uid.get_mut(&seen.uid).expect("the caller has found the object");
        let first_sight = object.newest_seen.is_none();
        if let Some(since_ms) = object.waits_since_ms() {
            self.served.note(&object.full_name.resource, seen.t_ms, since_ms, first_sight && object.created.is_some());
        }
        let collapsed = std::mem::take(&mut object.collapsed);
        if collapsed.count > 0 {
            self.collapsed -= collapsed.count;
            tally.count(Outcome::Late, collapsed.count);
            tally.heal(seen.t_ms.saturating_sub(collapsed.first_t_ms));
        }
        for position in 0..=index {
            let version = object.pending.pop_front().expect("the caller has found a version at `index`");
            self.open.remove(&version.order);
            if object.overdue > 0 {
                object.overdue -= 1;
                self.overdue -= 1;
            }
            let lag_ms = seen.t_ms.saturating_sub(version.t_ms);
            let exact = position == index;
            let next_came_ms = object.pending.front().filter(|_| !exact).map(|next| next.came_ms);
            if exact {
                // All times before the run's clock starts are 0 and give no duration.
                if seen.t_ms > 0 {
                    tally.lag(version.faulted, lag_ms);
                }
                object.newest_seen = Some(version.order);
                object.last_told = Some(version.order);
            }
            let in_time = seen.t_ms <= due_ms(version.came_ms, next_came_ms, self.deadline_ms);
            let outcome = match (in_time, exact, version.change) {
                (true, true, _) => Outcome::Observed,
                (true, false, _) => Outcome::Coalesced,
                (false, _, Change::Deleted) => Outcome::LateGhost,
                (false, _, _) => Outcome::Late,
            };
            if in_time {
                tally.count(outcome, 1);
            } else {
                tally.heal(seen.t_ms.saturating_sub(version.came_ms));
                let detail = if exact { String::new() } else { format!("superseded by revision {}", seen.revision) };
                tally.row(object.anomaly_of_version(&seen.uid, &version, outcome, seen.t_ms, Some(seen.t_ms), &detail));
            }
            if version.change == Change::Deleted {
                self.overdue_deletions.remove(&version.order);
            }
            object.remember(&seen.uid, version, lag_ms, self.bounds.settled_per_object, memory);
        }
        if object.pending.is_empty()
            && let Some(deletion) = &mut object.deletion
        {
            deletion.settled = true;
            self.tombstones.push_back(seen.uid.clone());
        }
        let predecessor = object.predecessor.take();
        if first_sight
            && seen.change == Change::Modified
            && let Some(before) = predecessor.and_then(|uid| self.by_uid.get_mut(&uid))
        {
            before.swapped = true;
        }
        if first_sight {
            self.decide_postponed(false, tally);
        }
    }

    /// Counts a version as overdue. If its object then has too many overdue versions, keeps only a hash of the oldest
    /// one.
    pub fn overdue(&mut self, order: Order, now_ms: u64, waits: bool, tally: &mut Tally, memory: &mut Memory) {
        let Some(uid) = self.open.get(&order).cloned() else { return };
        let object = self.by_uid.get_mut(&uid).expect("an open version has an object");
        let deleted_order = object.deletion.as_ref().map(|deletion| deletion.order);
        object.overdue += 1;
        self.overdue += 1;
        if object.overdue > self.bounds.overdue_per_object
            && let Some(version) = object.pending.pop_front()
        {
            if object.collapsed.count == 0 {
                object.collapsed.first_t_ms = version.t_ms;
            }
            object.collapsed.count += 1;
            object.dropped = true;
            object.overdue -= 1;
            self.overdue -= 1;
            self.collapsed += 1;
            self.open.remove(&version.order);
            memory.keep(&uid, &version.revision, version.order);
        }
        if deleted_order == Some(order) {
            self.overdue_deletions.insert(order);
            if !waits && self.by_uid.get(&uid).is_some_and(|object| self.in_gap(object)) {
                self.decide_object(&uid, now_ms, u64::MAX, "", tally);
            }
        }
    }

    /// Decides the outcomes of all open versions that were committed before `until_ms`, in the order of commits.
    pub fn finish(&mut self, now_ms: u64, until_ms: u64, tally: &mut Tally) {
        self.decide_postponed(true, tally);
        let mut after = Bound::Unbounded;
        while let Some((order, uid)) = self.open.range((after, Bound::Unbounded)).next() {
            let (order, uid) = (*order, uid.clone());
            self.decide_object(&uid, now_ms, until_ms, "", tally);
            after = Bound::Excluded(order);
        }
    }

    /// Drops deleted objects beyond the bounds of [`super::Config`].
    pub fn bury(&mut self, tally: &mut Tally, memory: &mut Memory) {
        while self.overdue_deletions.len() > self.bounds.overdue_deletions
            && let Some(order) = self.overdue_deletions.first().copied()
            && let Some(uid) = self.open.get(&order).cloned()
        {
            let now_ms = self.by_uid.get(&uid).and_then(|object| object.pending.back()).map_or(0, |last| last.t_ms);
            let now_ms = now_ms.saturating_add(self.deadline_ms);
            self.decide_object(&uid, now_ms, u64::MAX, "decided before the end: too many deletions are overdue", tally);
        }
        while self.tombstones.len() > self.bounds.tombstones
            && let Some(uid) = self.tombstones.pop_front()
        {
            let Some(object) = self.by_uid.remove(&uid) else { continue };
            for version in &object.settled {
                memory.keep(&uid, &version.revision, version.order);
            }
            memory.keep_dead(&uid, object.newest_committed);
            if self.by_name.get(&object.full_name) == Some(&uid) {
                self.by_name.remove(&object.full_name);
            }
        }
    }

    /// Decides the outcomes of an object's open versions that were committed before `until_ms`: no further observation
    /// follows.
    fn decide_object(&mut self, uid: &Uid, now_ms: u64, until_ms: u64, detail: &str, tally: &mut Tally) {
        let Some(object) = self.by_uid.get(uid) else { return };
        let unobservable = self.in_gap(object);
        let hidden_ms = object.deletion.as_ref().and_then(|deletion| deletion.hidden_ms);
        let deadline_ms = self.deadline_ms;
        let hides = |version: &Version| {
            hidden_ms.is_some_and(|ended_ms| version.came_ms.saturating_add(deadline_ms) >= ended_ms)
        };
        let object = self.by_uid.get_mut(uid).expect("found above");
        let is_waiting = object.may_wait_at(now_ms);
        let collapsed = std::mem::take(&mut object.collapsed).count;
        self.collapsed -= collapsed;
        tally.count(if unobservable || is_waiting { Outcome::Unobservable } else { Outcome::Missed }, collapsed);
        self.overdue -= object.overdue as u64;
        object.overdue = 0;
        let all = std::mem::take(&mut object.pending).into_iter();
        let (old, young): (VecDeque<Version>, _) = all.partition(|version| version.t_ms < until_ms);
        object.pending = young;
        let missed = collapsed + old.iter().filter(|version| version.change != Change::Deleted).count() as u64;
        if missed > 0 && !unobservable && !is_waiting && object.newest_seen.is_none() {
            tally.counts.unseen += 1;
        }
        tally.counts.queued += if is_waiting && !unobservable { missed } else { 0 };
        for version in old {
            self.open.remove(&version.order);
            self.overdue_deletions.remove(&version.order);
            let (outcome, why) = match version.change {
                _ if unobservable => (Outcome::Unobservable, "created and deleted inside one outage of the stream"),
                _ if hides(&version) => {
                    (Outcome::Unobservable, "deleted before the subject, started again, listed what is there")
                }
                Change::Deleted if object.swapped && object.newest_seen.is_some() => {
                    (Outcome::IdentitySwap, "the next object of this name was reported as an update")
                }
                Change::Deleted => (Outcome::Ghost, ""),
                _ if is_waiting => (Outcome::Unobservable, WAITS),
                _ if object.newest_seen.is_none() => (Outcome::Missed, "no version of this object was observed"),
                _ => (Outcome::Missed, ""),
            };
            let detail = if detail.is_empty() { why } else { detail };
            tally.row(object.anomaly_of_version(uid, &version, outcome, now_ms, None, detail));
        }
        if let Some(deletion) = object.deletion.as_mut().filter(|_| object.pending.is_empty()) {
            deletion.settled = true;
            self.tombstones.push_back(uid.clone());
        }
    }

    /// Whether the object was never observed, and was created and deleted inside one gap.
    fn in_gap(&self, object: &Object) -> bool {
        match (&object.deletion, object.created, object.newest_seen) {
            (Some(deletion), Some(created), None) => {
                self.gaps.hold(&object.full_name.resource, created, deletion.order)
            }
            _ => false,
        }
    }

    /// The row for an observation. A witness reports no names; the names are added if the object is known.
    pub fn anomaly_of(&self, seen: &Observation, outcome: Outcome, detail: &str) -> AnomalyRow {
        let name = self.by_uid.get(&seen.uid).map(|object| &object.full_name);
        row_of(name, seen, outcome, detail)
    }
}
