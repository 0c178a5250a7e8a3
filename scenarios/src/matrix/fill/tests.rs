//! Tests that `--resume` continues a table, and tests of the outcome of runs without a result.

use super::*;

fn row(length_ms: u64) -> RowHead {
    RowHead {
        id: "some-bug".to_owned(),
        row: "1".to_owned(),
        question: "Is it found?".to_owned(),
        reference: Vec::new(),
        length_ms,
        silence_s: Some(4),
        relist_s: None,
        http: Vec::new(),
    }
}

#[test]
fn what_was_measured_with_another_length_or_other_clocks_is_measured_again() {
    let out = tempfile::tempdir().unwrap();
    let choice = Choice {
        clients: vec!["service".to_owned()],
        rows: vec!["some-bug".to_owned()],
        drain: None,
        own_clocks: false,
        clock_rate: 1,
        jobs: 1,
        out: out.path().to_owned(),
        resume: true,
    };
    let cells = |row: RowHead| table_for(&choice, vec![row]).unwrap().0.cells.len();
    let (mut table, _) = table_for(&choice, vec![row(20_000)]).unwrap();
    table.enter(Cell {
        row: "some-bug".to_owned(),
        column: "service".to_owned(),
        outcome: Outcome::Passed,
        noticed_ms: None,
        observed_ms: None,
        reason: String::new(),
        command: String::new(),
    });
    write(&table, out.path()).unwrap();
    assert_eq!(cells(row(20_000)), 1);
    assert_eq!(cells(row(300_000)), 0, "a longer drain");
    assert_eq!(cells(RowHead { silence_s: None, ..row(20_000) }), 0, "the client's own clocks");
}

/// A fault without hits in a run that failed to start shows nothing about the client.
#[test]
fn a_fault_that_was_not_hit_in_a_run_that_broke_off_says_nothing() {
    let record = tempfile::tempdir().unwrap();
    let answer = |verdict: &str| {
        let text = serde_json::json!({
            "verdict": verdict, "words": [], "notHit": ["freeze"], "noticedMs": null, "observedMs": null,
            "record": record.path(),
        });
        serde_json::from_value::<Answer>(text).unwrap()
    };
    let says = |observed: &str, verdict: &str| {
        let finding = serde_json::json!({"budget": "validity.completed", "verdict": verdict, "observed": observed});
        let text = serde_json::json!({"findings": [finding]}).to_string();
        std::fs::write(record.path().join("verdict.json"), text).unwrap();
        outcome(&answer("invalid"))
    };
    assert_eq!(says("not ready", "invalid"), Outcome::Inconclusive);
    assert_eq!(says("interrupted", "invalid"), Outcome::Inconclusive);
    let not_hit = Outcome::NotHit { faults: vec!["freeze".to_owned()] };
    assert_eq!(says("completed", "pass"), not_hit);
    assert_eq!(says("witness silent", "invalid"), not_hit);
}
