//! Tests of the history of finished runs, and of a run's summary on a terminal with and without colours.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{itself, longhaul, program, story};

/// A scenario of a few seconds with the example watcher.
const SHORT: &str = "\
apiVersion: longhaul/v1
name: short
description: Does a small watcher see a few seconds of churn?
seed: 11
phases: {warmUp: 1s, steady: 3s, drain: 2s}
subject: {command: [example-watcher], witness: {kind: http}}
churn: {resource: packages.longhaul.dev/v1alpha1, population: 10, rate: 100/s, mix: {create: 2, update: 5, delete: 2}}
budgets: {events: {missed: 0, ghost: 0}}
";

/// Runs the scenario `runs` times and returns the records. Returns `None` if the example watcher is missing.
fn records(folder: &Path, runs: usize) -> Option<Vec<PathBuf>> {
    program("example-watcher")?;
    let scenario = folder.join("short.yaml");
    std::fs::write(&scenario, SHORT).unwrap();
    let record = |number: usize| {
        let record = folder.join(format!("run-{number}"));
        let mut soak = longhaul(&["soak", scenario.to_str().unwrap(), "--quiet", "--run-dir"]);
        let output = soak.arg(&record).output().unwrap();
        assert!(record.join("verdict.json").is_file(), "{}", story(&output));
        record
    };
    Some((0..runs).map(record).collect())
}

/// A run is added to the history once, even if it is added again. The table of the history has every run, and the chart
/// has one point for each run.
#[test]
#[ignore = "slow"]
fn runs_are_added_once_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let Some(records) = records(folder.path(), 2) else { return };
    let (file, svg) = (folder.path().join("history.jsonl"), folder.path().join("level.svg"));
    let path = file.to_str().unwrap();
    let compare = |arguments: &[&str]| {
        let output = longhaul(&[&["compare"], arguments].concat()).output().unwrap();
        (output.status.code(), story(&output))
    };
    let paths: Vec<&str> = records.iter().map(|record| record.to_str().unwrap()).collect();
    let (code, text) = compare(&[paths[0], "--into", path, "--build", "v1"]);
    assert!(code == Some(0) && text.contains("added     "), "{text}");
    let (code, text) = compare(&[paths[0], paths[1], "--into", path, "--build", "v2"]);
    assert!(code == Some(0) && text.contains("there     ") && text.contains("added     "), "{text}");
    let lines = std::fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.contains("\"build\":\"v1\"") && lines.contains("\"build\":\"v2\""), "{lines}");

    let (code, text) = compare(&[path]);
    assert!(code == Some(0) && text.contains("short: 2 runs") && text.contains("lag p50"), "{text}");
    let (code, text) = compare(&[path, "--figure", "lag p50", "--draw", svg.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg ") && picture.matches("<circle").count() == 2, "{picture}");
    let (code, text) = compare(&[path, "--figure", "lag p51"]);
    assert!(code == Some(64) && text.contains("there is no figure `lag p51`") && text.contains("lag p50"), "{text}");
    // A wrong name adds nothing, not even the right ones beside it.
    let (code, text) = compare(&[paths[1], "/nowhere", "--into", path]);
    assert!(code == Some(64), "{text}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), lines);
}

/// Colours are used on terminals only: not in a pipe, and not if `NO_COLOR` is set. The option `--color` overrides
/// these rules.
#[test]
#[ignore = "slow"]
fn colours_are_where_they_are_wanted() {
    const COLOUR: &str = "\u{1b}[1;";
    let folder = tempfile::tempdir().unwrap();
    let Some(records) = records(folder.path(), 1) else { return };
    let record = records[0].to_str().unwrap();
    let piped = |arguments: &[&str]| story(&longhaul(&[&["report", record], arguments].concat()).output().unwrap());
    assert!(!piped(&[]).contains(COLOUR) && !piped(&["--color", "never"]).contains(COLOUR));
    assert!(piped(&["--color", "always"]).contains(COLOUR));
    let refused = longhaul(&["report", record, "--color", "sometimes"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(64));

    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: needs script, for a terminal");
        return;
    }
    let on_a_terminal = |arguments: &str, no_color: Option<&str>| {
        let line = format!("'{}' report '{record}' {arguments}", itself().display());
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_remove("NO_COLOR");
        script.envs(no_color.map(|value| ("NO_COLOR", value))).env("TERM", "xterm");
        story(&script.stdin(std::process::Stdio::null()).output().unwrap())
    };
    assert!(on_a_terminal("", None).contains(COLOUR), "{}", on_a_terminal("", None));
    assert!(!on_a_terminal("", Some("1")).contains(COLOUR));
    assert!(!on_a_terminal("--color never", None).contains(COLOUR));
    // The flag takes precedence over the variable.
    assert!(on_a_terminal("--color always", Some("1")).contains(COLOUR));
}
