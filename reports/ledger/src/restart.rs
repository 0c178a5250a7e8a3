//! A restart of the subject's process: the new process does not know the objects that the old one knew.
//!
//! Owns the time of the last restart and the rules that excuse deletions. A new process lists, and a list does not show
//! objects that were deleted before it. A new process can therefore never report the deletion of an object that was
//! deleted before its list. A new process must still observe every existing object. A restart does not excuse versions
//! that were overdue when the process ended.

/// The last time range in which no process of the subject ran.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the unit belongs to each time")]
pub(super) struct Restart {
    pub ended_ms: u64,
    /// When the next process was started; none as long as no process runs.
    started_ms: Option<u64>,
    /// A deletion up to this time may have come before the list of the new process. The time is one deadline after the
    /// first report of the new process.
    until_ms: u64,
}

impl Restart {
    pub fn ended(now_ms: u64) -> Self {
        Self { ended_ms: now_ms, started_ms: None, until_ms: u64::MAX }
    }

    pub fn started(&mut self, now_ms: u64) {
        self.started_ms.get_or_insert(now_ms);
    }

    /// Notes that the subject reported something at `t_ms`.
    pub fn note_report(&mut self, t_ms: u64, deadline_ms: u64) {
        if self.until_ms == u64::MAX && self.is_after(t_ms) {
            self.until_ms = t_ms.saturating_add(deadline_ms);
        }
    }

    /// Whether the new process was already running at `t_ms`.
    pub fn is_after(&self, t_ms: u64) -> bool {
        self.started_ms.is_some_and(|started_ms| t_ms >= started_ms)
    }

    /// Whether the new process may not know of a deletion at `deleted_ms`, because it has reported nothing about the
    /// object since `told_ms`.
    pub fn hides(&self, deleted_ms: u64, told_ms: Option<u64>) -> bool {
        deleted_ms >= self.ended_ms
            && deleted_ms <= self.until_ms
            && told_ms.is_none_or(|told_ms| told_ms < self.ended_ms)
    }
}

#[cfg(test)]
mod tests {
    use facts::{Change, Commit, Observation, Order};

    use crate::{Config, Ledger};

    const D: u64 = 1000;

    fn commit(uid: &str, order: u64, change: Change) -> Commit {
        Commit {
            order: Order::of_numbered(order),
            resource: "packages.longhaul.dev".into(),
            namespace: "default".into(),
            name: uid.into(),
            uid: uid.into(),
            revision: order.to_string().as_str().into(),
            change,
        }
    }

    fn seen(t_ms: u64, uid: &str, order: u64, change: Change) -> Observation {
        Observation { t_ms, uid: uid.into(), revision: order.to_string().as_str().into(), change }
    }

    /// A ledger with three objects that the subject knows. The process ends at 5 s, and the next process starts at 6 s.
    fn ledger() -> Ledger {
        let mut ledger = Ledger::new(Config { deadline_ms: D, ..Config::default() });
        for (order, uid) in [(1, "stays"), (2, "goes"), (3, "old")] {
            ledger.commit(order, &commit(uid, order, Change::Added));
            ledger.observe(&seen(order, uid, order, Change::Added));
        }
        // Overdue long before the process ends: the restart does not excuse it.
        ledger.commit(1000, &commit("old", 4, Change::Deleted));
        ledger.advance(4900).for_each(drop);
        ledger.subject_ended(5000);
        ledger
    }

    /// Deletions that happen while no process runs are excused. Versions written while no process runs must still be
    /// observed, and earlier missed versions stay missed.
    #[test]
    fn only_deletions_of_the_time_without_a_process_are_excused() {
        let mut ledger = ledger();
        ledger.commit(5100, &commit("goes", 5, Change::Modified));
        ledger.commit(5200, &commit("goes", 6, Change::Deleted));
        ledger.commit(5300, &commit("stays", 7, Change::Modified));
        ledger.commit(5400, &commit("brief", 8, Change::Added));
        ledger.commit(5500, &commit("brief", 9, Change::Deleted));
        ledger.subject_started(6000);
        ledger.observe(&seen(6050, "stays", 7, Change::Added));
        assert_eq!(ledger.believed().len(), 2, "`goes` is known to be gone, `old` is not: {:?}", ledger.believed());
        ledger.finish(20_000).for_each(drop);
        let counts = ledger.counts();
        assert_eq!((counts.unobservable, counts.ghost, counts.missed), (4, 1, 0), "{counts:?}");
        assert_eq!((counts.observed, counts.duplicate), (4, 0));
    }

    /// If a process reported an object after the restart, it has to report the object's deletion too.
    #[test]
    fn what_the_new_process_knows_is_due() {
        let mut ledger = ledger();
        ledger.subject_started(6000);
        ledger.observe(&seen(6010, "stays", 1, Change::Added));
        ledger.observe(&seen(6010, "goes", 2, Change::Added));
        assert_eq!(ledger.counts().duplicate, 0, "another process told it the first time");
        ledger.observe(&seen(6020, "stays", 1, Change::Added));
        assert_eq!(ledger.counts().duplicate, 1);
        ledger.commit(6100, &commit("goes", 5, Change::Deleted));
        ledger.finish(20_000).for_each(drop);
        assert_eq!((ledger.counts().ghost, ledger.counts().unobservable), (2, 0));
    }

    /// Deletions later than one deadline after the first report of the new process are not excused.
    #[test]
    fn the_excuse_ends() {
        let mut ledger = ledger();
        ledger.subject_started(6000);
        ledger.observe(&seen(6010, "stays", 1, Change::Added));
        ledger.commit(6010 + D + 1, &commit("goes", 5, Change::Deleted));
        ledger.finish(20_000).for_each(drop);
        assert_eq!((ledger.counts().ghost, ledger.counts().unobservable), (2, 0));
    }

    /// If no new process starts, versions of existing objects are missed, and deletions after the end of the process
    /// are unobservable.
    #[test]
    fn without_a_new_process_everything_else_is_missed() {
        let mut ledger = ledger();
        ledger.commit(5100, &commit("stays", 5, Change::Modified));
        ledger.commit(5200, &commit("goes", 6, Change::Deleted));
        ledger.finish(20_000).for_each(drop);
        assert_eq!((ledger.counts().missed, ledger.counts().ghost, ledger.counts().unobservable), (1, 1, 1));
    }
}
