//! Deleted objects whose deletion the witness cannot report, and whose versions the subject had not reported before.
//!
//! Owns the decision whether such versions were missed or waited in the subject's queue.

use super::super::object::Version;
use super::{Objects, Outcome, Tally};
use facts::Order;

/// How many deadlines a subject may wait before it repeats a refused write. Some subjects wait ten seconds, which is two
/// usual deadlines.
const AGAIN_DEADLINES: u64 = 3;

/// Maximum number of postponed decisions, about 50 bytes each. Further deletions are decided at once.
const POSTPONED_MAX: usize = 1000;
/// Maximum number of older versions that are looked at for one deletion.
const OLDER_MAX: usize = 1000;

/// A deletion whose decision waits for the proof that the object had been in a queue.
#[derive(Debug)]
pub(super) struct Postponed {
    order: Order,
    t_ms: u64,
    why: &'static str,
}

impl Objects {
    /// Decides a deletion that the witness cannot report: no more observations of the object follow. If the subject never
    /// observed the object, and has not observed an older object either, the decision is postponed.
    pub fn give_up(&mut self, order: Order, now_ms: u64, why: &'static str, tally: &mut Tally) {
        if self.postponed.len() < POSTPONED_MAX && self.waits_behind(order, now_ms) {
            self.postponed.push_back(Postponed { order, t_ms: now_ms, why });
        } else {
            self.decide_given_up(order, now_ms, why, tally);
        }
    }

    /// Decides the deletions that were postponed and for which there is proof now; with `all` also the others.
    pub(super) fn decide_postponed(&mut self, all: bool, tally: &mut Tally) {
        for _ in 0..self.postponed.len() {
            let Some(one) = self.postponed.pop_front() else { return };
            if all || !self.waits_behind(one.order, one.t_ms) {
                self.decide_given_up(one.order, one.t_ms, one.why, tally);
            } else {
                self.postponed.push_back(one);
            }
        }
    }

    /// Whether nothing shows yet that the deleted object waited in a queue, and an older object that the subject never
    /// observed still waits. If the subject observes the older one, the deleted one waited in the same queue.
    fn waits_behind(&self, order: Order, now_ms: u64) -> bool {
        let Some(object) = self.open.get(&order).and_then(|uid| self.by_uid.get(uid)) else { return false };
        let (Some(first), None) = (object.pending.front(), &object.newest_seen) else { return false };
        let resource = &object.full_name.resource;
        let since_ms = object.waits_since_ms().unwrap_or(now_ms);
        if self.served.of(resource).is_some_and(|served| served.has_queue(since_ms, now_ms)) {
            return false;
        }
        let older = self.open.range(..first.order).take(OLDER_MAX).filter_map(|(_, uid)| self.by_uid.get(uid));
        older.into_iter().any(|older| {
            older.full_name.resource == *resource && older.newest_seen.is_none() && older.deletion.is_none()
        })
    }

    fn decide_given_up(&mut self, order: Order, now_ms: u64, why: &str, tally: &mut Tally) {
        let Some(uid) = self.open.get(&order).cloned() else { return };
        let Some(object) = self.by_uid.get_mut(&uid) else { return };
        let served = self.served.of(&object.full_name.resource);
        let waits_since_ms = object.waits_since_ms().unwrap_or(now_ms);
        let is_queued = served.is_some_and(|served| served.has_queue(waits_since_ms, now_ms));
        // The subject has to try again, and had little time for that.
        let again_ms = self.deadline_ms.saturating_mul(AGAIN_DEADLINES);
        let is_refused = object.refused_ms.is_some_and(|t_ms| t_ms.saturating_add(again_ms) >= now_ms);
        let is_queued = is_queued || is_refused;
        let collapsed = std::mem::take(&mut object.collapsed).count;
        self.collapsed -= collapsed;
        tally.count(if is_queued { Outcome::Unobservable } else { Outcome::Missed }, collapsed);
        tally.counts.queued += if is_queued { collapsed } else { 0 };
        self.overdue -= object.overdue as u64;
        object.overdue = 0;
        let pending = std::mem::take(&mut object.pending);
        let is_overdue = |version: &Version| version.came_ms.saturating_add(self.deadline_ms) < now_ms;
        let is_missed = |version: &Version| is_overdue(version) && !version.kept && !is_queued;
        if object.newest_seen.is_none() && ((collapsed > 0 && !is_queued) || pending.iter().any(is_missed)) {
            tally.counts.unseen += 1;
        }
        for version in pending {
            self.open.remove(&version.order);
            let (outcome, why) = match (is_overdue(&version), version.kept) {
                (true, true) => (Outcome::Unobservable, "a fault kept it from the subject until its object was gone"),
                (true, false) if is_queued => {
                    tally.counts.queued += 1;
                    let refused = "its object was deleted soon after a write of the subject to it was refused";
                    let waited = "its object was deleted while it waited in the subject's queue";
                    (Outcome::Unobservable, if is_refused { refused } else { waited })
                }
                (true, false) => (Outcome::Missed, why),
                (false, _) => (Outcome::Unobservable, why),
            };
            tally.row(object.anomaly_of_version(&uid, &version, outcome, now_ms, None, why));
        }
        if let Some(deletion) = &mut object.deletion {
            deletion.settled = true;
        }
        self.overdue_deletions.remove(&order);
        self.tombstones.push_back(uid);
    }
}
