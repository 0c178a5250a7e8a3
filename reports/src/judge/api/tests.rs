//! Tests that each wrong count in the record of calls leads to exactly its finding, and that a clean record leads to
//! none.

use crate::example::{Example, Judged as _};
use crate::record::{CallsRow, Quantiles, tag};

/// A record with correct calls in every interval, and with every limit set.
fn called() -> Example {
    let mut example = Example::clean();
    let limits = r#"{"wrong": 0, "lost": 0, "staleness": "1s", "letIn": 0, "errors": 0, "p50": "20ms", "p99": "50ms"}"#;
    example.manifest.budgets.api = Some(serde_json::from_str(limits).unwrap());
    for row in &mut example.intervals {
        row.calls = Some(CallsRow {
            planned: 120,
            sent: 120,
            read: 90,
            set: 10,
            turned_away: 20,
            judged: 90,
            staleness: Some(Quantiles { count: 90, max_us: 400_000, ..Quantiles::default() }),
            ..CallsRow::default()
        });
    }
    example.record(tag::CALLS_READ, 30_000, 5_000, 20_000);
    example
}

fn fired(example: &Example) -> Vec<String> {
    let judgement = example.judged();
    let crossed = judgement.crossed().into_iter();
    crossed.map(|finding| format!("{} {}", finding.budget, finding.verdict.word())).collect()
}

/// A name, a change that damages the counts of calls, and all findings that must then not pass.
type Planted = (&'static str, fn(&mut CallsRow), &'static [&'static str]);

const PLANTED: [Planted; 8] = [
    ("clean", |_| {}, &[]),
    ("a count that never was", |row| row.wrong = 1, &["api.wrong fail"]),
    ("a count that was not stored", |row| row.lost = 1, &["api.lost fail"]),
    ("somebody was let in", |row| row.let_in = 1, &["api.letIn fail"]),
    ("no answer", |row| row.errors = 1, &["api.errors fail"]),
    ("an old count", |row| row.staleness.as_mut().unwrap().max_us = 1_000_001, &["api.staleness fail"]),
    (
        "answers that could not be compared",
        |row| row.unjudged = 1,
        &["api.wrong inconclusive", "api.lost inconclusive", "api.staleness inconclusive"],
    ),
    (
        "a wrong answer among those that could be",
        |row| (row.unjudged, row.wrong) = (1, 1),
        &["api.wrong fail", "api.lost inconclusive", "api.staleness inconclusive"],
    ),
];

#[test]
fn each_planted_fault_fires_exactly_its_finding() {
    for (name, spoil, expected) in PLANTED {
        let mut example = called();
        spoil(example.intervals[9].calls.as_mut().unwrap());
        assert_eq!(fired(&example), expected, "{name}");
    }
}

#[test]
fn slow_reads_and_calls_that_were_not_made_fire() {
    let mut example = called();
    example.record(tag::CALLS_READ, 30_000, 60_000, 400);
    assert_eq!(fired(&example), ["api.p99 fail"]);
    let mut example = called();
    for row in &mut example.intervals {
        row.calls.as_mut().unwrap().sent = 80;
    }
    // A limit that was met under a smaller load may not be met under the planned one.
    let open = ["api.staleness", "api.p50", "api.p99", "validity.callRate"].map(|name| format!("{name} inconclusive"));
    assert_eq!(fired(&example), open);
}

/// If no call reads from the subject's API, the limits on answers are undecided.
#[test]
fn without_reads_nothing_is_right() {
    let mut example = called();
    for row in &mut example.intervals {
        row.calls = Some(CallsRow::default());
    }
    let fired = fired(&example);
    assert!(fired.contains(&"api.wrong inconclusive".to_owned()), "{fired:?}");
    assert!(fired.iter().all(|finding| finding.ends_with(" inconclusive")), "{fired:?}");
}
