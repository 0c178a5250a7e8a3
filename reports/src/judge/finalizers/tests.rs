//! Tests of `finalizers.stuck` with objects that are stuck in their deletion.

use crate::example::{self, judgement_of_objects};
use crate::judge::{Judgement, Verdict, Word};
use crate::record::{Hanging, Objects, PutOn, Refusals, StuckFinalizer};

fn held(object: &str, by: PutOn, for_ms: u64) -> StuckFinalizer {
    StuckFinalizer {
        resource: "packages.longhaul.dev".into(),
        object: object.into(),
        finalizer: "example.com/cleanup".into(),
        by,
        manager: (by == PutOn::Subject).then(|| "manager".into()),
        for_ms,
        refusals: None,
    }
}

fn refused(times: u64, last_ms: u64) -> StuckFinalizer {
    let refusals = Some(Refusals { times, last_ms, status: 409, wait_ms: None });
    StuckFinalizer { refusals, ..held("n/a", PutOn::Subject, 42_000) }
}

fn judgement_of(held: Vec<StuckFinalizer>, budgets: Option<&str>) -> Judgement {
    judgement_with(Hanging { held, ..Hanging::default() }, budgets)
}

fn judgement_with(hanging: Hanging, budgets: Option<&str>) -> Judgement {
    let hanging = Hanging { read_ms: 159_000, objects: 500, ..hanging };
    judgement_of_objects(Some(Objects { hanging: Some(hanging), ..Objects::default() }), budgets)
}

fn finding(judgement: &Judgement) -> (Verdict, &str) {
    example::finding(judgement, "finalizers.stuck").unwrap()
}

#[test]
fn a_finalizer_that_never_goes_is_named_with_object_and_time() {
    let judgement = judgement_of(vec![held("n/a", PutOn::Subject, 42_000), held("n/b", PutOn::Subject, 30_000)], None);
    let text = "2 objects hang in deletion with a finalizer of the subject: packages.longhaul.dev n/a is held by `example.com/cleanup` (put on by \
        `manager`) since 42 s (younger deletions than 5 s do not count).";
    assert_eq!(finding(&judgement), (Verdict::Fail, text));
    assert_eq!((judgement.verdict, &judgement.words[..]), (Verdict::Fail, &[Word::Stuck][..]));
    let allowed = judgement_of(vec![held("n/a", PutOn::Subject, 42_000)], Some(r#"{"finalizers": {"stuck": 1}}"#));
    assert_eq!(finding(&allowed).0, Verdict::Pass);
}

#[test]
fn what_is_nobodys_fault_is_not_charged() {
    for (held, text) in [
        (vec![], "none of 500 objects hangs in deletion with a finalizer of the subject."),
        (
            vec![held("n/a", PutOn::Subject, 4000)],
            "no object has been in deletion for longer than 5 s; one was deleted later than that.",
        ),
        (
            vec![held("n/a", PutOn::ControlPlane, 42_000)],
            "none of 500 objects hangs in deletion with a finalizer of the subject.",
        ),
    ] {
        let judgement = judgement_of(held, None);
        assert_eq!((judgement.verdict, finding(&judgement)), (Verdict::Pass, (Verdict::Pass, text)));
    }
}

/// An object template copied from a cluster may have the finalizer of a controller that does not run in this cluster. A
/// finalizer from the template is reported and not judged.
#[test]
fn a_finalizer_of_the_template_is_said_and_not_decided() {
    let judgement = judgement_of(vec![held("n/a", PutOn::Scenario, 42_000)], None);
    let (verdict, text) = finding(&judgement);
    assert!(verdict == Verdict::Inconclusive && text.contains("otherwise remove it from the template"), "{text}");
    let both = judgement_of(vec![held("n/a", PutOn::Scenario, 42_000), held("n/b", PutOn::Subject, 42_000)], None);
    assert_eq!(finding(&both).0, Verdict::Fail, "what is certain decides");
}

/// After many refusals a correct controller still waits. One refused write does not excuse a wait of half a minute. In
/// the test, the objects are read at 159 s.
#[test]
fn who_was_refused_many_times_may_still_be_waiting() {
    let waiting = judgement_of(vec![refused(14, 130_000)], None);
    assert_eq!((waiting.verdict, finding(&waiting).0), (Verdict::Pass, Verdict::Pass));
    let note = "1 object hangs in deletion with a finalizer of the subject, which is not charged: packages.longhaul.dev n/a was refused (status 409) 14 times in a \
        row, last at 2 min 10 s, and a controller on client-go may wait 1 min 21 s before it tries again.";
    assert!(waiting.notes.iter().any(|said| said == note), "{:?}", waiting.notes);
    for charged in [refused(1, 130_000), refused(8, 130_000), refused(10, 0), refused(999_999, 0)] {
        let is_charged = charged.refusals.as_ref().is_some_and(|refusals| refusals.times < 100);
        assert_eq!(judgement_of(vec![charged], None).verdict == Verdict::Fail, is_charged);
    }
}

/// One of forty objects with a refused write hangs: the subject repeats such writes, and this object may wait for long.
/// If five of forty hang, the subject forgets refused writes.
#[test]
fn a_single_refused_object_among_many_is_not_decided() {
    let of =
        |held: Vec<StuckFinalizer>, refused: u64| judgement_with(Hanging { held, refused, ..Hanging::default() }, None);
    let one = || vec![refused(1, 100_000)];
    let few = of(one(), 40);
    let (verdict, text) = finding(&few);
    assert_eq!(verdict, Verdict::Inconclusive, "{text}");
    let end = "as were writes of 39 other objects, which do not hang. After further failures a controller on client-go waits up to 16 min 40 s; a longer drain decides.";
    assert!(text.ends_with(end), "{text}");
    assert_eq!(finding(&of(one(), 8)).0, Verdict::Fail);
    let five = (0..5).map(|at| StuckFinalizer { object: format!("n/{at}"), ..refused(1, 100_000) }).collect();
    assert_eq!(finding(&of(five, 40)).0, Verdict::Fail);
    assert_eq!(finding(&of(vec![held("n/b", PutOn::Subject, 42_000)], 40)).0, Verdict::Fail, "no write was refused");
}

/// A controller that fails at each try without a refused write doubles its pauses, and is refused once after that.
#[test]
fn a_client_whose_pauses_doubled_may_still_be_waiting() {
    let doubled = |wait_ms: u64, last_ms: u64| {
        let mut row = refused(1, last_ms);
        row.refusals.as_mut().unwrap().wait_ms = Some(wait_ms);
        judgement_of(vec![row], None)
    };
    let waiting = doubled(41_000, 118_000);
    assert_eq!(waiting.verdict, Verdict::Pass);
    let note = "was refused (status 409) 1 time in a row, last at 1 min 58 s, and a controller on client-go may wait 51.2 s (its pauses doubled before) before \
        it tries again.";
    assert!(waiting.notes.iter().any(|said| said.ends_with(note)), "{:?}", waiting.notes);
    assert_eq!(doubled(41_000, 100_000).verdict, Verdict::Fail, "the wait is over");
    assert_eq!(doubled(10_000, 118_000).verdict, Verdict::Fail);
}
