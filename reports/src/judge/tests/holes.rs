//! Tests of gaps in each record that the harness reads from the control plane. The budgets that a gap affects are
//! undecided, and the summary names them. Budgets that facts outside of the gap broke remain broken.

use crate::example::{Example, Judged as _, LENGTH_MS};
use crate::judge::{Judgement, Verdict};
use crate::ledger::Outcome;
use crate::record::{
    Audited, End, EndReason, Foreign, Hanging, Hole, Objects, Quiet, RequestSummary, Siblings, TooMany,
};

/// One kind of gap: how it is written into a record, the budgets that it leaves undecided, and the text of the finding.
struct Case {
    name: &'static str,
    hole: fn(&mut Example, &mut Vec<RequestSummary>),
    open: &'static [&'static str],
    says: &'static str,
}

fn hole(of: Audited) -> Hole {
    Hole { of, from_ms: 100_000, to_ms: 102_000, detail: "too old resource version".into() }
}

fn summary(lost: u64) -> RequestSummary {
    RequestSummary { start_ms: 100_000, end_ms: 105_000, requests: 900, lists: 60, watches: 60, refused: 0, lost }
}

const WHY: &str = "the watch of configmaps had a hole of 1.5 s at 1 min 41 s (too old resource version)";

fn siblings(excess: u64) -> Siblings {
    let example = TooMany { object: "n/a".into(), wanted: 1, found: 2, ..TooMany::default() };
    let examples = if excess > 0 { vec![example] } else { Vec::new() };
    Siblings { resource: "configmaps".into(), unread: Some(WHY.into()), excess, examples, ..Siblings::default() }
}

/// The budgets on lists and watches that are undecided if some lists or watches have no row.
const FOLLOWS: &[&str] = &["requests.blind", "requests.hotLoop", "requests.openWatches", "requests.staleResume"];

const CASES: [Case; 8] = [
    Case {
        name: "the harness fell behind the requests of the subject",
        hole: |_, summaries| summaries.push(summary(17)),
        open: FOLLOWS,
        says: "the harness fell behind the subject's requests, and missed 17 of them between 1 min 40 s and 1 min 45 s",
    },
    Case {
        name: "more requests than have rows",
        hole: |_, summaries| summaries.push(summary(0)),
        open: FOLLOWS,
        says: "900 requests of the subject from 1 min 40 s on are only counted",
    },
    Case {
        name: "the audit of a real control plane's commits",
        hole: |example, _| example.end.as_mut().unwrap().holes.push(hole(Audited::Commits)),
        open: &["events.ghost", "events.lagP99", "events.late", "events.missed", "events.phantom", "events.regressed"],
        says: "the harness did not see the writes to the control plane from 1 min 40 s to 1 min 42 s (too old resource version)",
    },
    Case {
        name: "the audit log of a real API server",
        hole: |example, _| example.end.as_mut().unwrap().holes.push(hole(Audited::Requests)),
        open: &["events.blind"],
        says: "the subject's requests in the audit log of the API server from 1 min 40 s to 1 min 42 s (too old resource version)",
    },
    Case {
        name: "the watch of children",
        hole: |example, _| objects(example).siblings = vec![siblings(0)],
        open: &["children.excess", "children.orphaned"],
        says: WHY,
    },
    Case {
        name: "the watches of the quiet",
        hole: |example, _| {
            let quiet = Quiet { from_ms: 146_000, to_ms: 152_000, unread: Some(WHY.into()), ..Quiet::default() };
            objects(example).quiet = Some(quiet);
        },
        open: &["writes.steady"],
        says: WHY,
    },
    Case {
        name: "the list of what hangs in its deletion",
        hole: |example, _| objects(example).hanging = Some(Hanging { unread: Some(WHY.into()), ..Hanging::default() }),
        open: &["finalizers.stuck"],
        says: WHY,
    },
    Case {
        name: "who did what to whose objects",
        hole: |example, _| objects(example).foreign = Some(Foreign { unread: Some(WHY.into()), ..Foreign::default() }),
        open: &["objects.deletedByOthers", "objects.resurrected"],
        says: WHY,
    },
];

fn objects(example: &mut Example) -> &mut Objects {
    example.objects.get_or_insert_with(Objects::default)
}

fn judgement_of(case: &Case, spoil: fn(&mut Example)) -> Judgement {
    let (mut example, mut summaries) = (Example::clean(), Vec::new());
    spoil(&mut example);
    (case.hole)(&mut example, &mut summaries);
    let mut record = example.opened();
    record.requests.summaries = summaries;
    crate::judge::judge(&record)
}

fn with(judgement: &Judgement, verdict: Verdict) -> Vec<&str> {
    let of = judgement.findings.iter().filter(|finding| finding.verdict == verdict && finding.judge != "validity");
    of.map(|finding| finding.budget.as_str()).collect()
}

#[test]
fn a_hole_in_any_audit_is_said_and_what_it_leaves_open_is_inconclusive() {
    for case in &CASES {
        let judgement = judgement_of(case, |_| {});
        let open = with(&judgement, Verdict::Inconclusive);
        // Default limits that a condition of validity leaves undecided are named once, in a note.
        let noted = |budget: &str| judgement.notes.iter().any(|note| note.contains(budget) && note.contains(case.says));
        for budget in case.open {
            assert!(
                open.contains(budget) || noted(budget),
                "{}: {budget} of {open:?}, {:?}",
                case.name,
                judgement.notes
            );
        }
        let others = open.iter().find(|budget| !case.open.contains(budget) && !budget.starts_with("events."));
        assert_eq!(others, None, "{}: {open:?}", case.name);
        let says = |text: &String| text.contains(case.says);
        let told = judgement.notes.iter().any(says) || judgement.crossed().iter().any(|finding| says(&finding.text));
        assert!(told, "{}: {judgement:#?}", case.name);
        if open.is_empty() {
            continue;
        }
        assert_eq!(judgement.verdict, Verdict::Inconclusive, "{}", case.name);
        assert!(
            says(&judgement.reason) || judgement.reason.starts_with("not decided"),
            "{}: {}",
            case.name,
            judgement.reason
        );
    }
}

/// A broken budget whose facts are complete remains broken, whatever gaps exist.
#[test]
fn a_hole_hides_no_failure_that_was_seen() {
    for case in &CASES {
        let judgement = judgement_of(case, |example| example.miss(5, 20_000));
        assert!(with(&judgement, Verdict::Fail).contains(&"events.missed"), "{}: {judgement:#?}", case.name);
        assert_eq!(judgement.verdict, Verdict::Fail, "{}", case.name);
    }
    let case = &CASES[4];
    let mut example = Example::clean();
    objects(&mut example).siblings = vec![siblings(2)];
    let judgement = example.judged();
    assert_eq!(with(&judgement, Verdict::Fail), ["children.excess"], "{}", case.name);
}

/// A version that looks missed may have been superseded by a version that was written in the gap.
#[test]
fn what_seems_broken_behind_a_hole_is_not_decided() {
    let judgement = judgement_of(&CASES[2], |example| example.miss(5, 120_000));
    assert!(with(&judgement, Verdict::Inconclusive).contains(&"events.missed"), "{judgement:#?}");
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
}

/// A version that was first reported after a gap in the record of commits may have been written in the gap, so the
/// version is no phantom. An unknown version that was reported before the gap is a phantom.
#[test]
fn a_phantom_behind_a_hole_is_not_decided() {
    let phantom = |observed_ms: u64| {
        let mut example = Example::clean();
        example.miss(1, 20_000);
        example.intervals.last_mut().unwrap().events.missed = 0;
        example.intervals[9].events.phantom = 1;
        let row = example.anomalies.last_mut().unwrap();
        (row.outcome, row.observed_ms) = (Outcome::Phantom, Some(observed_ms));
        (CASES[2].hole)(&mut example, &mut Vec::new());
        let judgement = example.judged();
        judgement.findings.into_iter().find(|finding| finding.budget == "events.phantom").unwrap().verdict
    };
    assert_eq!([phantom(101_000), phantom(50_000)], [Verdict::Inconclusive, Verdict::Fail]);
}

/// The mock's own log of commits has no gaps: if the harness loses commits, the run is broken off.
#[test]
fn a_harness_that_lost_commits_of_the_mock_has_no_run() {
    let mut example = Example::clean();
    let detail = "the harness fell behind the control plane's commits: 9 were dropped unread".to_owned();
    let reason = EndReason::HarnessError { detail };
    example.end = Some(End { ended_ms: LENGTH_MS, reason, lost: None, holes: Vec::new() });
    let judgement = example.judged();
    assert_eq!(judgement.verdict, Verdict::Invalid);
    assert!(judgement.reason.contains("the harness fell behind the control plane's commits"), "{}", judgement.reason);
    example.miss(5, 20_000);
    assert_eq!(example.judged().verdict, Verdict::Fail);
}
