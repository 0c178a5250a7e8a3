//! Tests of `finalizers.stuck` with objects that are stuck in their deletion.

use crate::example::{Example, Judged as _};
use crate::judge::{Judgement, Verdict, Word};
use crate::record::{Hanging, Held, Objects, PutOn, Refusals};

fn held(object: &str, by: PutOn, for_ms: u64) -> Held {
    Held {
        resource: "packages.longhaul.dev".into(),
        object: object.into(),
        finalizer: "example.com/cleanup".into(),
        by,
        manager: (by == PutOn::Subject).then(|| "manager".into()),
        for_ms,
        refusals: None,
    }
}

fn refused(times: u64, last_ms: u64) -> Held {
    let refusals = Some(Refusals { times, last_ms, status: 409, wait_ms: None });
    Held { refusals, ..held("n/a", PutOn::Subject, 42_000) }
}

fn judged(held: Vec<Held>, budgets: Option<&str>) -> Judgement {
    let mut example = Example::clean();
    if let Some(budgets) = budgets {
        example.manifest.budgets = serde_json::from_str(budgets).unwrap();
    }
    let hanging = Hanging { read_ms: 159_000, objects: 500, held, ..Hanging::default() };
    example.objects = Some(Objects { hanging: Some(hanging), ..Objects::default() });
    example.judged()
}

fn said(judgement: &Judgement) -> (Verdict, &str) {
    let found = judgement.findings.iter().find(|finding| finding.budget == "finalizers.stuck").unwrap();
    (found.verdict, &found.text)
}

#[test]
fn a_finalizer_that_never_goes_is_named_with_object_and_time() {
    let judgement = judged(vec![held("n/a", PutOn::Subject, 42_000), held("n/b", PutOn::Subject, 30_000)], None);
    let text = "2 objects hang in deletion with a finalizer of the subject: packages.longhaul.dev n/a is held by `example.com/cleanup` (put on by \
        `manager`) since 42 s (younger deletions than 5 s do not count).";
    assert_eq!(said(&judgement), (Verdict::Fail, text));
    assert_eq!((judgement.verdict, &judgement.words[..]), (Verdict::Fail, &[Word::Stuck][..]));
    let allowed = judged(vec![held("n/a", PutOn::Subject, 42_000)], Some(r#"{"finalizers": {"stuck": 1}}"#));
    assert_eq!(said(&allowed).0, Verdict::Pass);
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
        let judgement = judged(held, None);
        assert_eq!((judgement.verdict, said(&judgement)), (Verdict::Pass, (Verdict::Pass, text)));
    }
}

/// An object template copied from a cluster may have the finalizer of a controller that does not run in this cluster. A
/// finalizer from the template is reported and not judged.
#[test]
fn a_finalizer_of_the_template_is_said_and_not_decided() {
    let judgement = judged(vec![held("n/a", PutOn::Scenario, 42_000)], None);
    let (verdict, text) = said(&judgement);
    assert!(verdict == Verdict::Inconclusive && text.contains("otherwise remove it from the template"), "{text}");
    let both = judged(vec![held("n/a", PutOn::Scenario, 42_000), held("n/b", PutOn::Subject, 42_000)], None);
    assert_eq!(said(&both).0, Verdict::Fail, "what is certain decides");
}

/// After many refusals a correct controller still waits. One refused write does not excuse a wait of half a minute. In
/// the test, the objects are read at 159 s.
#[test]
fn who_was_refused_many_times_may_still_be_waiting() {
    let waiting = judged(vec![refused(14, 130_000)], None);
    assert_eq!((waiting.verdict, said(&waiting).0), (Verdict::Pass, Verdict::Pass));
    let note = "1 object hangs in deletion with a finalizer of the subject, which is not charged: packages.longhaul.dev n/a was refused (status 409) 14 times in a \
        row, last at 2 min 10 s, and a controller on client-go may wait 1 min 21 s before it tries again.";
    assert!(waiting.notes.iter().any(|said| said == note), "{:?}", waiting.notes);
    for charged in [refused(1, 130_000), refused(8, 130_000), refused(10, 0), refused(999_999, 0)] {
        let is_charged = charged.refusals.as_ref().is_some_and(|refusals| refusals.times < 100);
        assert_eq!(judged(vec![charged], None).verdict == Verdict::Fail, is_charged);
    }
}

/// A controller that fails at each try without a refused write doubles its pauses, and is refused once after that.
#[test]
fn a_client_whose_pauses_doubled_may_still_be_waiting() {
    let doubled = |wait_ms: u64, last_ms: u64| {
        let mut row = refused(1, last_ms);
        row.refusals.as_mut().unwrap().wait_ms = Some(wait_ms);
        judged(vec![row], None)
    };
    let waiting = doubled(41_000, 118_000);
    assert_eq!(waiting.verdict, Verdict::Pass);
    let note = "was refused (status 409) 1 time in a row, last at 1 min 58 s, and a controller on client-go may wait 51.2 s (its pauses doubled before) before \
        it tries again.";
    assert!(waiting.notes.iter().any(|said| said.ends_with(note)), "{:?}", waiting.notes);
    assert_eq!(doubled(41_000, 100_000).verdict, Verdict::Fail, "the wait is over");
    assert_eq!(doubled(10_000, 118_000).verdict, Verdict::Fail);
}
