//! Tests of versions that a fault withheld from the subject. The deadline of a withheld version counts from its
//! delivery, and a version that never reached the subject is not missed.

use super::*;

/// A ledger with an object that the subject knows, a change of the object at 1 s, and the delivery of this change.
fn ledger(deletions_observable: bool) -> Ledger {
    let mut ledger = Ledger::new(Config { deadline_ms: D, deletions_observable, ..Config::default() });
    ledger.commit(0, &commit(1, A));
    ledger.observe(&seen(10, 1, A));
    ledger.commit(1000, &commit(2, M));
    ledger
}

fn commit(order: u64, change: Change) -> Commit {
    Commit {
        order: Order::of_numbered(order),
        resource: RESOURCE.into(),
        namespace: "default".into(),
        name: "a".into(),
        uid: "u".into(),
        revision: Revision::of_number(order),
        change,
    }
}

fn seen(t_ms: u64, order: u64, change: Change) -> Observation {
    Observation { t_ms, uid: "u".into(), revision: Revision::of_number(order), change }
}

fn came(ledger: &mut Ledger, order: u64, t_ms: u64) {
    ledger.came(&"u".into(), &Revision::of_number(order), t_ms);
}

/// A version that was delivered after eight seconds is observed in time within a deadline of the delivery. An
/// observation after the deadline is late, and its lateness counts from the delivery of the version.
#[test]
fn what_was_given_back_is_due_from_then_on() {
    let mut ledger = ledger(true);
    ledger.advance(8900).for_each(drop);
    let overdue = ledger.overdue_of(&"u".into(), 8900);
    assert_eq!(overdue.iter().map(|event| event.t_ms).collect::<Vec<_>>(), [1000]);
    came(&mut ledger, 2, 9000);
    ledger.observe(&seen(9900, 2, M));
    ledger.commit(10_000, &commit(3, X));
    came(&mut ledger, 3, 18_000);
    ledger.observe(&seen(19_001, 3, X));
    assert_eq!((ledger.counts().observed, ledger.counts().late, ledger.counts().late_ghost), (2, 0, 1));
    assert_eq!(ledger.take_heal().max() / 1000, 1001, "what the fault took is not the subject's");
    // Without a report of its delivery it is late.
    let mut ledger = self::ledger(true);
    ledger.observe(&seen(9900, 2, M));
    assert_eq!(ledger.counts().late, 1);
}

/// If an object is deleted, its version that was delivered just before is not missed. A version that was delivered long
/// before the deletion is missed.
#[test]
fn of_a_gone_object_is_missed_what_came_and_was_overdue() {
    for (came_ms, missed) in [(8500, 0), (5000, 1)] {
        let mut ledger = ledger(false);
        came(&mut ledger, 2, came_ms);
        ledger.commit(9000, &commit(3, X));
        let counts = ledger.counts();
        assert_eq!((counts.missed, counts.unobservable), (missed, 2 - missed), "came at {came_ms}");
    }
}

/// A version that may not have been delivered before its object's deletion is not missed. While the object exists, a
/// withheld version still has to be observed.
#[test]
fn of_a_gone_object_is_not_missed_what_never_came() {
    let mut ledger = ledger(false);
    ledger.kept(&"u".into(), &Revision::of_number(2));
    ledger.commit(9000, &commit(3, X));
    let counts = ledger.counts();
    assert_eq!((counts.missed, counts.unobservable, counts.unseen), (0, 2, 0));
    let rows: Vec<AnomalyRow> = ledger.advance(9000).collect();
    assert!(rows[0].detail.as_deref().is_some_and(|detail| detail.contains("a fault kept it")), "{rows:?}");
    let mut ledger = self::ledger(false);
    ledger.kept(&"u".into(), &Revision::of_number(2));
    ledger.finish(20_000).for_each(drop);
    assert_eq!(ledger.counts().missed, 1);
}

/// A version that was delivered together with the next version is superseded by the next version. A version that was
/// delivered before the next version has its own deadline.
#[test]
fn who_supersedes_counts_from_when_it_came() {
    let mut ledger = ledger(true);
    ledger.commit(1500, &commit(3, M));
    came(&mut ledger, 2, 9000);
    came(&mut ledger, 3, 9000);
    ledger.observe(&seen(9800, 3, M));
    assert_eq!((ledger.counts().observed, ledger.counts().coalesced, ledger.counts().late), (2, 1, 0));
    let mut ledger = self::ledger(true);
    ledger.commit(1500, &commit(3, M));
    came(&mut ledger, 3, 9000);
    ledger.observe(&seen(9800, 3, M));
    assert_eq!((ledger.counts().observed, ledger.counts().coalesced, ledger.counts().late), (2, 0, 1));
}
