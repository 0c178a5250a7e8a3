//! Tests of the backlog: objects that wait at the end are a queue if objects were served in the order of their waiting,
//! and were overtaken if not.

use super::*;

fn commit(ledger: &mut Ledger, t_ms: u64, uid: &str, revision: u64) {
    let commit = Commit {
        order: Order::of_numbered(revision),
        resource: RESOURCE.into(),
        namespace: "default".into(),
        name: uid.into(),
        uid: uid.into(),
        revision: Revision::of_number(revision),
        change: if revision < 100 { A } else { M },
    };
    ledger.commit(t_ms, &commit);
}

fn delete(ledger: &mut Ledger, t_ms: u64, uid: &str, revision: u64) {
    let commit = Commit {
        order: Order::of_numbered(revision),
        resource: RESOURCE.into(),
        namespace: "default".into(),
        name: uid.into(),
        uid: uid.into(),
        revision: Revision::of_number(revision),
        change: X,
    };
    ledger.commit_untold(t_ms, &commit);
}

fn observe(ledger: &mut Ledger, t_ms: u64, uid: &str, revision: u64) {
    ledger.observe(&Observation { t_ms, uid: uid.into(), revision: Revision::of_number(revision), change: A });
}

fn ledger() -> Ledger {
    Ledger::new(Config { deadline_ms: D, ..Config::default() })
}

/// Twenty objects begin to wait within two seconds, and one is served each second. No remaining object counts as
/// overtaken.
#[test]
fn what_is_served_in_order_leaves_a_queue() {
    let mut ledger = ledger();
    (1..=20).for_each(|at| commit(&mut ledger, at * 100, &format!("u{at}"), at));
    (1..=12).for_each(|at| observe(&mut ledger, at * 1000, &format!("u{at}"), at));
    // The subject's own writes after the load are no part of the queue.
    commit(&mut ledger, 9000, "own", 50);
    let _ = ledger.advance(12_000).count();
    let backlog = Backlog {
        resource: RESOURCE.to_owned(),
        from_ms: 4500,
        to_ms: 12_500,
        served: [2, 2, 2, 2],
        served_total: 12,
        waiting: 8,
        ..Backlog::default()
    };
    assert_eq!(ledger.backlogs(4500, 12_500), [backlog]);
}

/// If one object a second begins to wait, and each but two is served fifteen seconds later, the first of the two counts
/// as overtaken. The second of two waiting objects does not count as overtaken, because the served objects began to
/// wait at most five seconds later.
#[test]
fn what_others_overtook_was_passed_by() {
    let mut ledger = ledger();
    (1..=20).for_each(|at| commit(&mut ledger, at * 1000, &format!("u{at}"), at));
    let served = (1..=16).filter(|at| ![3, 12].contains(at));
    served.for_each(|at| observe(&mut ledger, at * 1000 + 15_000, &format!("u{at}"), at));
    let [backlog] = ledger.backlogs(20_500, 31_000).try_into().unwrap();
    assert_eq!((backlog.waiting, backlog.passed, backlog.first_passed.as_deref()), (6, 1, Some("default/u3")));
}

#[test]
fn where_nothing_waits_there_is_no_queue() {
    let mut ledger = ledger();
    commit(&mut ledger, 100, "u1", 1);
    observe(&mut ledger, 150, "u1", 1);
    assert_eq!(ledger.backlogs(1000, 2000), []);
}

/// One object a second begins to wait, and each is served fifteen seconds later. Objects that are deleted in this queue
/// prove no loss. An object that was overtaken long ago, and one that is deleted while the subject serves nothing, are
/// missed.
#[test]
fn what_is_deleted_in_the_queue_is_not_missed() {
    let mut ledger = ledger();
    let mut counts = Vec::new();
    for second in 1..=60 {
        commit(&mut ledger, second * 1000, &format!("u{second}"), second);
        if second > 15 && ![20, 21].contains(&(second - 15)) {
            observe(&mut ledger, second * 1000 + 10, &format!("u{}", second - 15), second - 15);
        }
        let _ = ledger.advance(second * 1000 + 20).count();
        // The first waited for 11 s when its turn was 4 s away; the second was passed by 25 s before.
        let deleted = match second {
            41 => "u30",
            60 => "u20",
            _ => continue,
        };
        delete(&mut ledger, second * 1000 + 30, deleted, 100 + second);
        counts.push((ledger.counts().missed, ledger.counts().queued));
    }
    delete(&mut ledger, 90_000, "u50", 200);
    let _ = ledger.finish(95_000).count();
    counts.push((ledger.counts().missed, ledger.counts().queued));
    // With `u21` and the fifteen objects from `u46` on.
    assert_eq!(counts, [(0, 1), (1, 1), (17, 1)]);
}

/// Like the test above, but an object that is always in the queue gets a further version each second, just before its
/// turn. Its short waits do not hide that the queue is long.
#[test]
fn an_object_that_is_always_in_the_queue_does_not_hide_the_queue() {
    let mut ledger = ledger();
    commit(&mut ledger, 500, "always", 99);
    observe(&mut ledger, 600, "always", 99);
    for second in 1..=41 {
        commit(&mut ledger, second * 1000, &format!("u{second}"), second);
        commit(&mut ledger, second * 1000 + 1, "always", second + 500);
        observe(&mut ledger, second * 1000 + 5, "always", second + 500);
        if second > 15 {
            observe(&mut ledger, second * 1000 + 10, &format!("u{}", second - 15), second - 15);
        }
        let _ = ledger.advance(second * 1000 + 20).count();
    }
    delete(&mut ledger, 41_030, "u30", 900);
    assert_eq!((ledger.counts().missed, ledger.counts().queued), (0, 1));
}

/// Twenty objects exist at the start. The subject serves the first after twelve seconds, and then one a second. An object
/// that is deleted before its turn is not missed.
#[test]
fn what_a_slow_start_left_in_the_queue_is_not_missed() {
    let mut ledger = ledger();
    (1..=20).for_each(|at| commit(&mut ledger, at, &format!("u{at}"), at));
    for second in 12..=20 {
        observe(&mut ledger, second * 1000, &format!("u{}", second - 11), second - 11);
        let _ = ledger.advance(second * 1000 + 20).count();
    }
    delete(&mut ledger, 20_030, "u15", 100);
    assert_eq!((ledger.counts().missed, ledger.counts().queued), (0, 1));
}

/// Twenty objects exist at the start. The subject serves one of them every 300 ms, and new objects at once, as a priority
/// queue does. An object of the start that is deleted before its turn is not missed; a new object that is lost is missed.
#[test]
fn what_a_priority_queue_has_not_served_yet_is_not_missed() {
    let mut ledger = ledger();
    (1..=20).for_each(|at| commit(&mut ledger, at, &format!("u{at}"), at));
    for step in 1..=18 {
        observe(&mut ledger, step * 300, &format!("u{step}"), step);
        commit(&mut ledger, step * 300 + 10, &format!("new{step}"), 40 + step);
        if step != 9 {
            observe(&mut ledger, step * 300 + 20, &format!("new{step}"), 40 + step);
        }
        let _ = ledger.advance(step * 300 + 30).count();
    }
    delete(&mut ledger, 5500, "u20", 200);
    assert_eq!((ledger.counts().missed, ledger.counts().queued), (0, 1));
    delete(&mut ledger, 8000, "new9", 201);
    let _ = ledger.finish(15_000).count();
    assert_eq!((ledger.counts().missed, ledger.counts().queued), (2, 1), "new9 and u19");
}

/// Twenty objects exist at the start, and the subject serves only newer ones at first. One of the twenty is deleted before
/// the subject has observed any of them. It waited in the queue if the older ones are observed soon after, and it is
/// missed if they come with a late relist or not at all.
#[test]
fn older_objects_prove_the_queue_of_a_deleted_one() {
    for (older_ms, missed, queued) in [(Some(6000), 0, 1), (Some(20_000), 1, 0), (None, 1 + 19, 0)] {
        let mut ledger = ledger();
        (1..=20).for_each(|at| commit(&mut ledger, at, &format!("u{at}"), at));
        for step in 1..=8 {
            commit(&mut ledger, step * 600, &format!("new{step}"), 40 + step);
            observe(&mut ledger, step * 600 + 10, &format!("new{step}"), 40 + step);
            let _ = ledger.advance(step * 600 + 20).count();
        }
        let _ = ledger.advance(5500).count();
        delete(&mut ledger, 5500, "u15", 200);
        assert_eq!(ledger.counts().missed + ledger.counts().queued, 0, "not decided yet");
        for at in (1..=20).filter(|at| *at != 15) {
            if let Some(t_ms) = older_ms {
                observe(&mut ledger, t_ms + at, &format!("u{at}"), at);
            }
        }
        let _ = ledger.finish(30_000).count();
        assert_eq!((ledger.counts().missed, ledger.counts().queued), (missed, queued), "{older_ms:?}");
    }
}

/// Twenty objects exist at the start. The subject serves them all at once after twelve seconds, but for one. This object
/// is missed.
#[test]
fn what_a_quick_subject_lost_after_a_slow_start_is_missed() {
    let mut ledger = ledger();
    (1..=20).for_each(|at| commit(&mut ledger, at, &format!("u{at}"), at));
    (1..=20).filter(|at| *at != 15).for_each(|at| observe(&mut ledger, 12_000 + at, &format!("u{at}"), at));
    let _ = ledger.advance(20_020).count();
    delete(&mut ledger, 20_030, "u15", 100);
    assert_eq!((ledger.counts().missed, ledger.counts().queued), (1, 0));
}

/// The subject serves at once whatever it saw. It lost one object, which is deleted after the deadline.
#[test]
fn what_a_quick_subject_lost_is_missed() {
    let mut ledger = ledger();
    for step in 1..=40 {
        commit(&mut ledger, step * 100, &format!("u{step}"), step);
        if step != 7 {
            observe(&mut ledger, step * 100 + 10, &format!("u{step}"), step);
        }
    }
    let _ = ledger.advance(4100).count();
    delete(&mut ledger, 4100, "u7", 100);
    assert_eq!((ledger.counts().missed, ledger.counts().queued), (1, 0));
}

/// An object is deleted before the subject has observed it. The versions are not missed if a write of the subject to
/// the object was refused less than three deadlines before, and they are missed if the refusal is older.
#[test]
fn what_is_deleted_soon_after_a_refused_write_is_not_missed() {
    let mut ledger = ledger();
    for (uid, revision) in [("soon", 1), ("long-ago", 2), ("never", 3)] {
        commit(&mut ledger, 100, uid, revision);
    }
    ledger.refused(RESOURCE, "default", "soon", 3200);
    ledger.refused(RESOURCE, "default", "long-ago", 2800);
    let _ = ledger.advance(6000).count();
    for (uid, revision) in [("soon", 11), ("long-ago", 12), ("never", 13)] {
        delete(&mut ledger, 6000, uid, revision);
    }
    assert_eq!((ledger.counts().missed, ledger.counts().queued), (2, 1));
}

/// At the end of a run, a subject whose writes were refused many times in a row may still wait for its next try. One whose
/// writes were refused a few times does not wait so long, and one that has succeeded since does not wait.
#[test]
fn what_waits_after_many_refused_writes_is_not_missed() {
    let mut ledger = ledger();
    for (uid, revision) in [("waits", 1), ("few", 2), ("never", 3), ("healed", 4)] {
        commit(&mut ledger, 100, uid, revision);
    }
    for (uid, times) in [("waits", 14), ("few", 5), ("healed", 14)] {
        (0..times).for_each(|number| ledger.refused(RESOURCE, "default", uid, 1000 + number));
    }
    observe(&mut ledger, 2000, "healed", 4);
    commit(&mut ledger, 3000, "healed", 105);
    let _ = ledger.finish(40_000).count();
    let counts = ledger.counts();
    assert_eq!((counts.missed, counts.unobservable, counts.queued), (3, 1, 1));
}
