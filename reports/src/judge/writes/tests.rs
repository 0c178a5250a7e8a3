//! Tests of `writes.steady` with writes in a quiet time (while no other client writes).

use crate::example::{self, judgement_of_objects};
use crate::judge::{Judgement, Verdict, Word};
use crate::record::{Flip, Objects, Quiet, Rewritten};

/// An object with this number of writes in each third of a quiet time of six seconds.
fn rewritten(object: &str, thirds: [u64; 3]) -> Rewritten {
    Rewritten {
        resource: "packages.longhaul.dev".into(),
        object: object.into(),
        writes: thirds.iter().sum(),
        thirds,
        first_ms: 146_100,
        last_ms: 151_900,
        fields: vec![Flip { field: "/status/seenAt".into(), times: 12 }],
        manager: Some("manager (status)".into()),
        user_agent: Some("manager/v0.0.0".into()),
        ..Rewritten::default()
    }
}

fn quiet(worst: Vec<Rewritten>) -> Quiet {
    Quiet {
        from_ms: 146_000,
        to_ms: 152_000,
        resources: vec!["packages.longhaul.dev".into()],
        tells_writers: true,
        writes: worst.iter().map(|row| row.writes).sum(),
        objects: worst.len() as u64,
        lasting: worst.iter().filter(|row| row.thirds.iter().all(|writes| *writes > 0)).count() as u64,
        worst,
        ..Quiet::default()
    }
}

fn judgement_of(quiet: Option<Quiet>, budgets: Option<&str>) -> Judgement {
    judgement_of_objects(quiet.map(|quiet| Objects { quiet: Some(quiet), ..Objects::default() }), budgets)
}

fn finding(judgement: &Judgement) -> (Verdict, &str) {
    example::finding(judgement, "writes.steady").unwrap_or((Verdict::Pass, ""))
}

/// If the subject writes objects until the end of the quiet time, the run fails even without a budget.
#[test]
fn who_writes_from_beginning_to_end_fails_with_object_fields_manager_and_rate() {
    let judgement = judgement_of(
        Some(quiet(vec![rewritten("lh-5-0/package-1", [40, 41, 39]), rewritten("lh-5-0/package-2", [1, 1, 1])])),
        None,
    );
    let text = "from 2 min 26 s on no other client wrote, and the subject kept writing 2 objects: packages.longhaul.dev lh-5-0/package-1 \
        120 times in 6 s (20/s), changing /status/seenAt as field manager `manager (status)` (manager/v0.0.0).";
    assert_eq!(finding(&judgement), (Verdict::Fail, text));
    assert_eq!((judgement.verdict, &judgement.words[..]), (Verdict::Fail, &[Word::WriteLoop][..]));
}

/// If the subject handles an object late, it writes the object a few times and then no more.
#[test]
fn what_comes_once_is_no_loop_however_much_it_is() {
    for thirds in [[0, 0, 0], [9, 0, 0], [0, 0, 9], [5, 5, 0], [0, 5, 5]] {
        let judgement = judgement_of(Some(quiet(vec![rewritten("n/a", thirds)])), None);
        assert_eq!(finding(&judgement).0, Verdict::Pass, "{thirds:?}: {judgement:?}");
        assert_eq!(judgement.verdict, Verdict::Pass, "{judgement:?}");
    }
    let text = judgement_of(Some(quiet(Vec::new())), None);
    let nothing = "in the 6 s from 2 min 26 s on, without any other writer, the subject wrote nothing.";
    assert_eq!(finding(&text), (Verdict::Pass, nothing));
}

#[test]
fn a_heartbeat_is_a_matter_of_the_budget() {
    let beats = || Some(quiet(vec![rewritten("n/a", [1, 1, 1])]));
    assert_eq!(finding(&judgement_of(beats(), None)).0, Verdict::Fail, "three in six seconds are 30 a minute");
    let slow = Quiet { from_ms: 32_000, ..beats().unwrap() };
    assert_eq!(
        finding(&judgement_of(Some(slow.clone()), None)).0,
        Verdict::Pass,
        "three in two minutes are a heartbeat"
    );
    assert_eq!(finding(&judgement_of(Some(slow), Some(r#"{"writes": {"steady": "0/s"}}"#))).0, Verdict::Fail);
    assert_eq!(finding(&judgement_of(beats(), Some(r#"{"writes": {"steady": "40/m"}}"#))).0, Verdict::Pass);
}

/// If the scenario sets the limit, missing facts make the finding undecided. Under a default limit, a gap makes the
/// finding undecided, and a short drain only leads to a note.
#[test]
fn what_was_not_seen_decides_nothing() {
    let asked = Some(r#"{"writes": {"steady": "0/s"}}"#);
    let short = Quiet { from_ms: 151_000, ..quiet(Vec::new()) };
    let unread = Quiet { unread: Some("HTTP 403".into()), ..quiet(Vec::new()) };
    for (quiet, why) in [(short.clone(), "make `phases.drain` longer"), (unread.clone(), "HTTP 403")] {
        let judgement = judgement_of(Some(quiet), asked);
        let (verdict, text) = finding(&judgement);
        assert!(verdict == Verdict::Inconclusive && text.contains(why), "{text}");
    }
    let judgement = judgement_of(Some(short), None);
    assert_eq!((judgement.verdict, finding(&judgement)), (Verdict::Pass, (Verdict::Pass, "")));
    assert!(judgement.notes.iter().any(|note| note.contains("make `phases.drain` longer")), "{:?}", judgement.notes);
    let judgement = judgement_of(Some(unread), None);
    assert_eq!((judgement.verdict, finding(&judgement).0), (Verdict::Inconclusive, Verdict::Inconclusive));
    assert_eq!(finding(&judgement_of(None, asked)).0, Verdict::Inconclusive);
    assert_eq!(finding(&judgement_of(None, None)), (Verdict::Pass, ""), "an older record");
}

/// A failure that was seen is reported, even if other objects could not be examined.
#[test]
fn a_gap_hides_no_loop() {
    let seen = Quiet { unread: Some("HTTP 403".into()), ..quiet(vec![rewritten("n/a", [9, 9, 9])]) };
    assert_eq!(finding(&judgement_of(Some(seen), None)).0, Verdict::Fail);
}
