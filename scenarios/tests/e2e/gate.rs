//! Tests of `longhaul gate` as a user runs it: a build of the service against one with a planted bug, and a build
//! against itself.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{has_python, longhaul, program, story};

/// A scenario with a steady phase of half a second, which is long enough for counted figures.
const SHORT: &str = "\
apiVersion: longhaul/v1
name: short
description: Is one build worse?
seed: 5
phases: {warmUp: 100ms, steady: 500ms, drain: 100ms}
controlPlane: {kind: mock}
registry: {kind: mock, images: 20}
subject: {service: {}, witness: {kind: http}}
admission: {rate: 500/s, arrivals: poisson, maxInFlight: 100, mix: {createPod: 5, deletePod: 2}}
";

/// The argument for three blocks of measurements, the smallest number with which a gate can decide. Three blocks are
/// enough, because the planted bugs of these tests change counted figures, or exceed the threshold many times.
const FEWEST_BLOCKS: &str = "3";

fn judgement(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("gate.json")).unwrap()).unwrap()
}

fn word<'a>(judgement: &'a Value, metric: &str) -> &'a Value {
    let rows = judgement["rows"].as_array().unwrap();
    &rows.iter().find(|row| row["metric"] == metric).unwrap_or_else(|| panic!("no {metric}"))["word"]
}

/// Runs a gate of the program with planted bugs against itself. Only build B has the bug `bug` switched on.
fn gate(folder: &Path, planted: &Path, bug: Option<&str>) -> (Output, Value) {
    gate_in(folder, planted, bug, SHORT, &["--quiet", "--no-callgrind", "--blocks", FEWEST_BLOCKS])
}

/// Runs a gate as [`gate`] does, with another scenario and further arguments.
fn gate_in(folder: &Path, planted: &Path, bug: Option<&str>, scenario: &str, more: &[&str]) -> (Output, Value) {
    let file = folder.join("short.yaml");
    std::fs::write(&file, scenario).unwrap();
    let out = folder.join(bug.unwrap_or("clean"));
    let mut command = longhaul(&[&["gate", file.to_str().unwrap()], more].concat());
    command.arg("--a").arg(planted).arg("--b").arg(planted).arg("--out").arg(&out);
    command.args(bug.iter().flat_map(|bug| ["--plant-b", bug]));
    let output = command.output().unwrap();
    assert!(out.join("gate.json").is_file(), "{}", story(&output));
    let judgement = judgement(&out);
    (output, judgement)
}

/// Whether the gate could decide which build is worse. If the gate reports that the machine was too busy, the test
/// proves nothing.
fn is_valid(output: &Output, judgement: &Value) -> bool {
    let pressed = judgement["reason"].as_str().is_some_and(|why| why.starts_with("the machine was under pressure"));
    if pressed {
        println!("skipped: needs a quieter machine\n{}", story(output));
        assert_eq!((output.status.code(), &judgement["outcome"]), (Some(2), &"cannotSay".into()));
    }
    assert_ne!(judgement["outcome"], "invalid", "{}", story(output));
    !pressed
}

#[test]
#[ignore = "slow"]
fn what_is_wrong_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("something"), "").unwrap();
    let path = folder.path().to_str().unwrap();
    let refused = |arguments: &[&str], remedy: &str| {
        let output = longhaul(&[&["gate"], arguments].concat()).output().unwrap();
        let said = story(&output);
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains(remedy), "{said}");
    };
    refused(&["--a", "/bin/true"], "--b <COMMAND>");
    refused(&["--a", "/nowhere/service", "--b", "/bin/true"], "--a /nowhere/service: no such file");
    refused(&["--a", "/bin/true", "--b", "/bin/true", "--out", path], "there is something in it already");
    refused(&["--a", "/bin/true", "--b", "/bin/true", "--blocks", "2"], "2 is not in 3..");
    refused(&["--again", path], "slices.jsonl");
    let out = folder.path().join("out");
    refused(
        &["--a", "/bin/true", "--b", "/bin/true", "--out", out.to_str().unwrap()],
        "A: it exited before it was ready",
    );
}

/// A gate finds answers that are longer by one KiB in both of its sessions, on any machine. Rendering the same
/// measurements again gives the same reports.
#[test]
#[ignore = "slow"]
fn an_answer_that_is_longer_is_worse() {
    let Some(planted) = program("longhaul-service-planted") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (output, judgement) = gate(folder.path(), &planted, Some("answer-1k-longer"));
    if !is_valid(&output, &judgement) {
        return;
    }
    assert_eq!(word(&judgement, "answerBytes"), "worse", "{}", story(&output));
    assert_eq!(
        (output.status.code(), &judgement["outcome"], &judgement["sessions"]),
        (Some(1), &"worse".into(), &2.into())
    );
    let out = folder.path().join("answer-1k-longer");
    let pages = ["gate.json", "gate.md", "gate.html"].map(|name| std::fs::read(out.join(name)).unwrap());
    let again = longhaul(&["gate", "--again", out.to_str().unwrap()]).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "{}", story(&again));
    assert!(story(&again).contains("bytes an answer"), "{}", story(&again));
    assert_eq!(pages, ["gate.json", "gate.md", "gate.html"].map(|name| std::fs::read(out.join(name)).unwrap()));
}

/// Without a bug, a gate never finds a build worse than itself on any machine, and the answers of A and B have the same
/// length.
#[test]
#[ignore = "slow"]
fn a_build_is_not_worse_than_itself() {
    let Some(planted) = program("longhaul-service-planted") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (output, judgement) = gate(folder.path(), &planted, None);
    if !is_valid(&output, &judgement) {
        return;
    }
    assert_ne!(judgement["outcome"], "worse", "{}", story(&output));
    assert_ne!(output.status.code(), Some(1));
    assert_eq!(word(&judgement, "answerBytes"), "same", "{}", story(&output));
    let lines = std::fs::read_to_string(folder.path().join("clean/slices.jsonl")).unwrap();
    let slices: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let slices: Vec<&Value> = slices.iter().filter_map(|line| line.get("slice")).collect();
    assert!(slices.len().is_multiple_of(2) && slices.len() >= 12, "those that are played again are pairs");
    let prints = |block: u64| -> Vec<&Value> {
        let of = slices.iter().filter(|slice| slice["session"] == 1 && slice["block"] == block);
        of.map(|slice| &slice["fingerprint"]).collect()
    };
    for block in 0..3 {
        let prints = prints(block);
        assert!(prints.iter().all(|print| *print == prints[0]), "all slices of a block send the same: {prints:?}");
    }
    assert_ne!(prints(0)[0], prints(1)[0], "another block sends something else");
}

/// A gate finds two additional system calls: on sockets by `perf`, if it is allowed, and on files by the kernel's own
/// counters.
#[test]
#[ignore = "slow"]
fn nightly_two_more_calls_are_found() {
    let Some(planted) = program("longhaul-service-planted") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (output, judgement) = gate(folder.path(), &planted, Some("two-more-syscalls"));
    if !is_valid(&output, &judgement) {
        return;
    }
    assert_eq!(word(&judgement, "fileCalls"), "worse", "{}", story(&output));
    assert_eq!(output.status.code(), Some(1), "{}", story(&output));
}

/// A scenario with a controller that only watches, with object changes and no reviews.
const WATCHES: &str = "\
apiVersion: longhaul/v1
name: watches
description: Is one watcher worse?
seed: 9
phases: {warmUp: 300ms, steady: 1s, drain: 100ms}
subject: {command: [python3, watcher.py], witness: {kind: http}}
churn: {resource: packages.longhaul.dev/v1alpha1, population: 20, rate: 150/s, mix: {create: 2, update: 5, delete: 2}}
";
/// A scenario with a webhook that watches nothing.
const ANSWERS: &str = "\
apiVersion: longhaul/v1
name: answers
description: Is one webhook worse?
seed: 9
phases: {warmUp: 300ms, steady: 1s, drain: 100ms}
subject: {command: {role: webhook, run: [python3, hook.py], serves: {path: /validate}}, startTimeout: 10s}
admission: {rate: 250/s}
";
const WATCHER: &str = include_str!("../../subjects/watcher.py");
const HOOK: &str = include_str!("../files/stranger/hook.py");

/// Runs a gate of two Python programs in folders with a space in their names.
fn gate_of_commands(folder: &Path, scenario: &str, [a, b]: [&str; 2]) -> (Output, Value) {
    let file = folder.join("scenario.yaml");
    std::fs::write(&file, scenario).unwrap();
    let command = |name: &str, text: &str| {
        let program = folder.join(name).join("it.py");
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        std::fs::write(&program, text).unwrap();
        format!("python3 '{}'", program.display())
    };
    let out = folder.join("out");
    let mut gate = longhaul(&["gate", file.to_str().unwrap(), "--quiet", "--no-callgrind", "--blocks", FEWEST_BLOCKS]);
    gate.args(["--a", &command("the old", a), "--b", &command("the new", b), "--out", out.to_str().unwrap()]);
    let output = gate.output().unwrap();
    assert!(out.join("gate.json").is_file(), "{}", story(&output));
    (output, judgement(&out))
}

/// A watcher that uses a millisecond more CPU time per event and drops deletions is worse in both figures. The scenario
/// of this gate has no reviews. The bytes that both watchers read per event are equal.
#[test]
#[ignore = "slow"]
fn nightly_a_watcher_that_works_more_and_misses_events_is_worse() {
    if !has_python() {
        return;
    }
    let (before, hears) =
        ("        kind, item = event[\"type\"], event[\"object\"]\n", "            self.deleted(metadata)\n");
    assert!(WATCHER.contains(before) && WATCHER.contains(hears));
    let slower = WATCHER.replacen(before, &format!("{before}        sum(range(40_000))\n"), 1);
    let worse = slower.replacen(hears, "            pass\n", 1);
    let folder = tempfile::tempdir().unwrap();
    let (output, judgement) = gate_of_commands(folder.path(), WATCHES, [WATCHER, &worse]);
    if !is_valid(&output, &judgement) {
        return;
    }
    assert_eq!(word(&judgement, "cpuPerEvent"), "worse", "{}", story(&output));
    assert_eq!(word(&judgement, "eventFailures"), "worse", "{}", story(&output));
    assert_eq!(word(&judgement, "bytesPerEvent"), "same", "{}", story(&output));
    assert_eq!((output.status.code(), &judgement["sessions"]), (Some(1), &2.into()), "{}", story(&output));
    let rows = judgement["rows"].as_array().unwrap();
    let leads = |row: &&Value| row["leads"] == true;
    let leading: Vec<&str> = rows.iter().filter(leads).map(|row| row["metric"].as_str().unwrap()).collect();
    assert_eq!(leading, ["eventFailures", "cpuPerEvent", "lag"]);
    assert!(rows.iter().all(|row| row["metric"] != "failures" && row["metric"] != "cpuPerRequest"));
    let junit = std::fs::read_to_string(folder.path().join("out/junit.xml")).unwrap();
    let case = junit.split("<testcase ").find(|case| case.starts_with("name=\"events missed or late\"")).unwrap();
    assert!(case.contains("<failure ") && case.contains("type=\"worse\""), "{junit}");
}

/// A foreign webhook is worse if its answers are longer by one KiB.
#[test]
#[ignore = "slow"]
fn nightly_a_webhook_of_somebody_else_that_answers_more_is_worse() {
    if !has_python() {
        return;
    }
    let answer = "\"allowed\": True}";
    assert!(HOOK.contains(answer));
    let longer = HOOK.replacen(answer, "\"allowed\": True, \"warnings\": [\"x\" * 1024]}", 1);
    let folder = tempfile::tempdir().unwrap();
    let (output, judgement) = gate_of_commands(folder.path(), ANSWERS, [HOOK, &longer]);
    if !is_valid(&output, &judgement) {
        return;
    }
    assert_eq!(word(&judgement, "answerBytes"), "worse", "{}", story(&output));
    assert_eq!(output.status.code(), Some(1), "{}", story(&output));
    assert!(judgement["header"]["events"] == 0.0 && judgement["header"]["rate"].as_f64() > Some(0.0));
}

/// With valgrind, instructions and allocations are counted per request and per event, also with `--quick`. The gate
/// prints how long the counting with valgrind takes.
#[test]
#[ignore = "slow"]
fn nightly_callgrind_counts_what_is_the_same() {
    let Some(planted) = program("longhaul-service-planted") else { return };
    if std::process::Command::new("callgrind_control").arg("--version").output().is_err() {
        println!("skipped: needs valgrind");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let churn = "churn: {resource: packages.longhaul.dev/v1alpha1, population: 20, rate: 100/s}\n";
    let scenario = format!("{SHORT}{churn}");
    // This runs without `--quick`: under callgrind, an unoptimized service takes longer for its events than that
    // allows.
    let more = ["--blocks", FEWEST_BLOCKS];
    let (output, judgement) = gate_in(folder.path(), &planted, None, &scenario, &more);
    if !is_valid(&output, &judgement) {
        return;
    }
    let notes = judgement["notes"].to_string();
    for metric in ["instructions", "allocations", "instructionsPerEvent", "allocationsPerEvent"] {
        assert_ne!(word(&judgement, metric), "worse", "{}", story(&output));
    }
    assert_eq!(word(&judgement, "instructions"), "same", "{}", story(&output));
    assert!(!notes.contains("instructions: not counted"), "{notes}");
}

/// A gate that would exceed its time limit is refused before anything starts. The message about the time limit suggests
/// a value within the limit.
#[test]
#[ignore = "slow"]
fn a_gate_that_takes_too_long_is_refused() {
    let refused = |arguments: &[&str], told: &str| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let fixed = ["gate", "--a", "/bin/true", "--b", "/bin/true", "--out", out.to_str().unwrap()];
        let output = longhaul(&[&fixed, arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{}", story(&output));
        assert!(story(&output).contains(told), "{}", story(&output));
    };
    refused(&["--blocks", "200"], "--blocks 200: two sessions would take ");
    refused(&["--at-most", "1m"], "or allow more with --at-most");
}
