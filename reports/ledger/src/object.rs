//! One object of the ledger, with its open and settled versions.
//!
//! Owns the fields of an object and the methods that read or change only this object. The module `objects` settles
//! versions, because that needs other objects and the counts of the run.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Outcome;
use super::memory::Memory;
use facts::{Change, Commit, Observation, Order, Revision, Uid};
use record::{AnomalyRow, CommitEvent};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FullName {
    pub resource: Arc<str>,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

#[derive(Debug)]
pub(super) struct Object {
    pub full_name: FullName,
    /// Versions that are not settled, oldest first; the first `overdue` of them are overdue.
    pub pending: VecDeque<Version>,
    pub overdue: usize,
    /// Counts of the overdue versions that are older than all versions in `pending`.
    pub collapsed: Collapsed,
    /// The most recently settled versions, oldest first.
    pub settled: VecDeque<SettledVersion>,
    /// Versions that a restore undid before they were observed, newest last. An observation of an undone version may
    /// still arrive.
    pub undone: VecDeque<Revision>,
    /// Whether versions older than those in `settled` were dropped.
    pub dropped: bool,
    pub newest_seen: Option<Order>,
    /// The version that the subject reported last, even if the subject had reported a newer version before.
    pub last_told: Option<Order>,
    /// When the subject last reported the object.
    pub told_ms: Option<u64>,
    /// When a write of the subject to the object was last refused with a status after which a right client tries again.
    pub refused_ms: Option<u64>,
    /// Number of such refusals since the subject last reported the object.
    pub refused_times: u64,
    pub newest_committed: Order,
    pub created: Option<Order>,
    pub first_revision: Option<u128>,
    pub deletion: Option<Deletion>,
    /// The previous object of this name, if the previous object was not settled when this object was created.
    pub predecessor: Option<Uid>,
    /// Whether the subject took the next object of this name for an update of this object.
    pub swapped: bool,
}

#[derive(Debug)]
pub(super) struct Version {
    pub revision: Revision,
    pub order: Order,
    pub t_ms: u64,
    /// The time from which the deadline of the version counts: its commit, or the time when a fault delivered it after
    /// withholding it.
    pub came_ms: u64,
    /// Whether a fault may have withheld the version from the subject.
    pub kept: bool,
    pub change: Change,
    pub faulted: bool,
}

#[derive(Debug)]
pub(super) struct SettledVersion {
    pub revision: Revision,
    pub order: Order,
    pub lag_ms: u64,
}

#[derive(Debug)]
pub(super) struct Deletion {
    pub revision: Revision,
    pub t_ms: u64,
    pub order: Order,
    pub settled: bool,
    /// When the process that knew the object ended. The process that started after that may not know that the object
    /// existed.
    pub hidden_ms: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Collapsed {
    pub count: u64,
    pub first_t_ms: u64,
}

impl Version {
    pub fn event(&self, name: &FullName, uid: &Uid) -> CommitEvent {
        let FullName { resource, namespace, name } = name.clone();
        let (order, uid, revision, change) = (self.order, uid.clone(), self.revision.clone(), self.change);
        CommitEvent { t_ms: self.t_ms, commit: Commit { order, resource, namespace, name, uid, revision, change } }
    }
}

impl FullName {
    /// The object's namespace and name for people: `default/web-1`.
    pub fn shown(&self) -> String {
        if self.namespace.is_empty() { self.name.to_string() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

impl Object {
    /// The time since which the object waits for an observation; none if it does not wait.
    pub fn waits_since_ms(&self) -> Option<u64> {
        let first = self.pending.front().map(|version| version.t_ms);
        if self.collapsed.count > 0 { Some(self.collapsed.first_t_ms) } else { first }
    }

    /// Whether writes of the subject to the object were refused so often that the subject may still wait for its next
    /// try.
    pub fn may_wait_at(&self, now_ms: u64) -> bool {
        let since = |t_ms: u64| now_ms.saturating_sub(t_ms);
        self.refused_times > 0
            && self.refused_ms.is_some_and(|t_ms| since(t_ms) < facts::longest_back_off_ms(self.refused_times))
    }

    pub fn has_revision(&self, revision: &Revision) -> bool {
        self.pending.iter().rev().any(|version| version.revision == *revision)
            || self.settled.iter().rev().any(|version| version.revision == *revision)
    }

    pub fn deletion_settled(&self) -> bool {
        self.deletion.as_ref().is_some_and(|deletion| deletion.settled)
    }

    /// Whether a numeric revision may belong to a dropped version: it is older than all versions in `settled`.
    pub fn may_have_dropped(&self, revision: &Revision) -> bool {
        let oldest_kept = self.settled.front().and_then(|version| version.revision.as_str().parse::<u128>().ok());
        match (revision.as_str().parse::<u128>(), self.first_revision, oldest_kept) {
            (Ok(number), Some(first), Some(oldest)) => self.dropped && first <= number && number < oldest,
            _ => false,
        }
    }

    pub fn remember(&mut self, uid: &Uid, version: Version, lag_ms: u64, bound: usize, memory: &mut Memory) {
        self.settled.push_back(SettledVersion { revision: version.revision, order: version.order, lag_ms });
        if self.settled.len() > bound
            && let Some(oldest) = self.settled.pop_front()
        {
            self.dropped = true;
            memory.keep(uid, &oldest.revision, oldest.order);
        }
    }

    pub fn anomaly(&self, seen: &Observation, outcome: Outcome, detail: &str) -> AnomalyRow {
        row_of(Some(&self.full_name), seen, outcome, detail)
    }

    pub fn anomaly_of_version(
        &self,
        uid: &Uid,
        version: &Version,
        outcome: Outcome,
        t_ms: u64,
        observed_ms: Option<u64>,
        detail: &str,
    ) -> AnomalyRow {
        let row = row(Some(&self.full_name), (uid, &version.revision, version.change), outcome, t_ms, detail);
        AnomalyRow { committed_ms: Some(version.t_ms), observed_ms, ..row }
    }
}

/// The row of a version or of an observation, without delivery, stream lines and evidence, which only the control plane
/// knows. Namespace and name are empty if the object is not known.
fn row(
    name: Option<&FullName>,
    (uid, revision, change): (&Uid, &Revision, Change),
    outcome: Outcome,
    t_ms: u64,
    detail: &str,
) -> AnomalyRow {
    let named = |part: fn(&FullName) -> &Arc<str>| name.map_or_else(String::new, |name| part(name).to_string());
    AnomalyRow {
        t_ms,
        outcome,
        resource: named(|name| &name.resource),
        namespace: named(|name| &name.namespace),
        name: named(|name| &name.name),
        uid: uid.to_string(),
        revision: revision.to_string(),
        change,
        committed_ms: None,
        observed_ms: None,
        delivery: None,
        wire: Vec::new(),
        detail: (!detail.is_empty()).then(|| detail.to_owned()),
        evidence: None,
    }
}

pub(super) fn row_of(name: Option<&FullName>, seen: &Observation, outcome: Outcome, detail: &str) -> AnomalyRow {
    let row = row(name, (&seen.uid, &seen.revision, seen.change), outcome, seen.t_ms, detail);
    AnomalyRow { observed_ms: Some(seen.t_ms), ..row }
}

/// The time until which an observation of a version is in time. That is the version's own deadline or, if the next
/// version came before that deadline, the deadline of the next version. The module doc of [`super`] has the rules.
pub(super) fn due_ms(came_ms: u64, next_came_ms: Option<u64>, deadline_ms: u64) -> u64 {
    let own = came_ms.saturating_add(deadline_ms);
    match next_came_ms {
        Some(next) if next <= own => next.saturating_add(deadline_ms),
        _ => own,
    }
}
