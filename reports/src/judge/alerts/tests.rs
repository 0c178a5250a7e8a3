//! Tests that each wrong count in the record of alerts leads to exactly its finding, and that a clean record leads to
//! none.

use crate::example::{Example, Judged as _};
use crate::record::AlertsRow;

fn alerted() -> Example {
    let mut example = Example::clean();
    example.manifest.budgets.alerts = Some(serde_json::from_str("{}").unwrap());
    for row in &mut example.intervals {
        row.alerts = Some(AlertsRow { decided: 90, dry_runs: 10, told: 90, ..AlertsRow::default() });
    }
    example
}

fn fired(example: &Example) -> Vec<String> {
    let judgement = example.judged();
    let crossed = judgement.crossed().into_iter();
    crossed.map(|finding| format!("{} {}", finding.budget, finding.verdict.word())).collect()
}

/// A name, a change that damages the counts of alerts, and all findings that must then not pass.
type Planted = (&'static str, fn(&mut AlertsRow), &'static [&'static str]);

const PLANTED: [Planted; 4] = [
    ("clean", |_| {}, &[]),
    ("one that nobody heard of", |row| row.lost = 1, &["alerts.lost fail"]),
    ("one that was told again", |row| row.twice = 1, &["alerts.twice fail"]),
    ("one about a dry run", |row| row.on_dry_run = 1, &["alerts.onDryRun fail"]),
];

#[test]
fn each_planted_fault_fires_exactly_its_finding() {
    for (name, spoil, expected) in PLANTED {
        let mut example = alerted();
        spoil(example.intervals[9].alerts.as_mut().unwrap());
        assert_eq!(fired(&example), expected, "{name}");
    }
}

#[test]
fn what_did_not_happen_decides_nothing() {
    let mut example = alerted();
    example.intervals.iter_mut().for_each(|row| row.alerts = None);
    let expected = ["alerts.lost inconclusive", "alerts.twice inconclusive", "alerts.onDryRun inconclusive"];
    assert_eq!(fired(&example), expected);
}

/// A subject that pins an image to another digest than the locked one breaks `admission.unlocked`. If no tag moved,
/// this budget is undecided.
#[test]
fn a_lock_that_is_ignored_is_found() {
    let mut example = Example::clean();
    let rows = |example: &mut Example, moved, unlocked| {
        let admission = example.intervals.iter_mut().filter_map(|row| row.admission.as_mut());
        admission.for_each(|row| (row.moved, row.unlocked) = (moved, unlocked));
    };
    example.manifest.budgets.admission.as_mut().unwrap().unlocked = Some(0);
    assert_eq!(fired(&example), ["admission.unlocked inconclusive"]);
    rows(&mut example, 5, 0);
    assert_eq!(fired(&example), Vec::<String>::new());
    rows(&mut example, 5, 1);
    assert_eq!(fired(&example), ["admission.unlocked fail"]);
}
