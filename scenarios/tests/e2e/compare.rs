//! Tests of `longhaul compare` with three subjects: a correct one, one with a planted bug, and one that exits.

use crate::support::{longhaul, program, story};

/// A scenario with deletions in ten periods of five seconds each, and with one fault.
const SCENARIO: &str = "\
apiVersion: longhaul/v1
name: three
description: Who sees every deletion?
seed: 11
phases: {warmUp: 2s, steady: 54s, drain: 4s}
subject: {command: [example-watcher], witness: {kind: http}}
churn: {resource: packages.longhaul.dev/v1alpha1, population: 30, rate: 40/s, mix: {create: 2, update: 5, delete: 2}}
faults: [{name: watch-reset, at: 8s, resource: packages}]
budgets: {events: {missed: 0, ghost: 0}}
";

/// In the comparison, the subject that loses events ranks lower, and the table names the cause. The subject that exits
/// still has a row in the table of the comparison, and the comparison continues.
#[test]
#[ignore = "slow: three runs of a minute, side by side"]
fn who_loses_is_behind_and_who_dies_is_a_row() {
    let (Some(right), Some(planted)) = (program("example-watcher"), program("example-watcher-planted")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("three.yaml"), folder.path().join("out"));
    std::fs::write(&file, SCENARIO).unwrap();
    let right = right.display();
    let subjects = [
        format!("right={right}"),
        format!("loses=env LONGHAUL_PLANTED_BUG=missed-delete {}", planted.display()),
        format!("dies=timeout -s KILL 12 {right}"),
        "absent=/nowhere/watcher".to_owned(),
    ];
    let mut command = longhaul(&["compare", file.to_str().unwrap(), "--parallel", "--json", "--out"]);
    command.arg(&out).args(subjects.iter().flat_map(|subject| ["--subject", subject]));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = |at: usize| &told["rows"][at];
    let fates: Vec<&str> = (0..4).map(|at| row(at)["fate"].as_str().unwrap()).collect();
    assert_eq!(fates, ["ran", "ran", "died", "never-began"], "{told:#}");
    assert_eq!(row(0)["verdict"], "pass", "{told:#}");
    // It may have a little more memory than another subject, which is reported; it lost nothing.
    let behind = row(0)["why"]["sentence"].as_str().unwrap_or_default();
    assert!(!behind.contains("never seen"), "{behind}");
    let ranks: Vec<Option<u64>> = (0..3).map(|at| row(at)["figures"]["ghosts"]["rank"].as_u64()).collect();
    assert_eq!(ranks, [Some(1), Some(2), None], "{told:#}");
    let why = |at: usize| row(at)["why"]["sentence"].as_str().unwrap();
    assert!(why(1).contains("deletions never seen") && why(1).contains("lost in the client"), "{}", why(1));
    assert!(why(2).starts_with("it ended by itself at "), "{}", why(2));
    assert!(why(3).contains("/nowhere/watcher"), "{}", why(3));
    let page = std::fs::read_to_string(out.join("compare.html")).unwrap();
    assert!(
        page.contains("<svg") && page.contains("right/report.html"),
        "the page has charts and leads to the reports"
    );
    assert!(
        out.join("loses/report.html").is_file()
            && out.join("compare.md").is_file()
            && out.join("compare.json").is_file()
    );
}
