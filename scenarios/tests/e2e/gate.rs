//! `longhaul gate` as a user runs it: two builds of the service, one with a planted bug, and one against itself.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{longhaul, program};

/// Slices of a second: what is counted does not need more.
const SHORT: &str = "\
apiVersion: longhaul/v1
name: short
description: Is one build worse?
seed: 5
phases: {warmUp: 300ms, steady: 1s, drain: 100ms}
controlPlane: {kind: mock}
registry: {kind: mock, images: 20}
subject: {kind: service, witness: {kind: http}}
admission: {rate: 300/s, arrivals: poisson, maxInFlight: 100, mix: {createPod: 5, deletePod: 2}}
";

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}\n{}", output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn judgement(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("gate.json")).unwrap()).unwrap()
}

fn word<'a>(judgement: &'a Value, metric: &str) -> &'a Value {
    let rows = judgement["rows"].as_array().unwrap();
    &rows.iter().find(|row| row["metric"] == metric).unwrap_or_else(|| panic!("no {metric}"))["word"]
}

/// A gate of the planted service against itself, with this bug in B.
fn gate(folder: &Path, planted: &Path, bug: Option<&str>) -> (Output, Value) {
    let scenario = folder.join("short.yaml");
    std::fs::write(&scenario, SHORT).unwrap();
    let out = folder.join(bug.unwrap_or("clean"));
    let mut command = longhaul(&["gate", scenario.to_str().unwrap(), "--quiet", "--no-callgrind", "--blocks", "5"]);
    command.arg("--a").arg(planted).arg("--b").arg(planted).arg("--out").arg(&out);
    command.args(bug.iter().flat_map(|bug| ["--plant-b", bug]));
    let output = command.output().unwrap();
    assert!(out.join("gate.json").is_file(), "{}", said(&output));
    let judgement = judgement(&out);
    (output, judgement)
}

/// Whether the gate could decide at all: one that says of itself that the machine was too busy proves nothing.
fn is_valid(output: &Output, judgement: &Value) -> bool {
    let valid = judgement["outcome"] != "invalid";
    if !valid {
        println!("skipped: needs a quieter machine\n{}", said(output));
        assert_eq!(output.status.code(), Some(2));
    }
    valid
}

#[test]
fn what_is_wrong_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("something"), "").unwrap();
    let path = folder.path().to_str().unwrap();
    let refused = |arguments: &[&str], remedy: &str| {
        let output = longhaul(&[&["gate"], arguments].concat()).output().unwrap();
        let said = said(&output);
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

/// A kibibyte more in each answer is found, twice, and nothing else has to be quiet for that. The same slices give the same pages again.
#[test]
fn an_answer_that_is_longer_is_worse() {
    let Some(planted) = program("longhaul-service-planted") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (output, judgement) = gate(folder.path(), &planted, Some("answer-1k-longer"));
    if !is_valid(&output, &judgement) {
        return;
    }
    assert_eq!(word(&judgement, "answerBytes"), "worse", "{}", said(&output));
    assert_eq!(
        (output.status.code(), &judgement["outcome"], &judgement["sessions"]),
        (Some(1), &"worse".into(), &2.into())
    );
    let out = folder.path().join("answer-1k-longer");
    let pages = ["gate.json", "gate.md", "gate.html"].map(|name| std::fs::read(out.join(name)).unwrap());
    let again = longhaul(&["gate", "--again", out.to_str().unwrap()]).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    assert!(said(&again).contains("bytes an answer"), "{}", said(&again));
    assert_eq!(pages, ["gate.json", "gate.md", "gate.html"].map(|name| std::fs::read(out.join(name)).unwrap()));
}

/// The clean twin: whatever the machine does meanwhile, a build is never worse than itself, and its answers are as long.
#[test]
fn a_build_is_not_worse_than_itself() {
    let Some(planted) = program("longhaul-service-planted") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (output, judgement) = gate(folder.path(), &planted, None);
    if !is_valid(&output, &judgement) {
        return;
    }
    assert_ne!(judgement["outcome"], "worse", "{}", said(&output));
    assert_ne!(output.status.code(), Some(1));
    assert_eq!(word(&judgement, "answerBytes"), "same", "{}", said(&output));
    let lines = std::fs::read_to_string(folder.path().join("clean/slices.jsonl")).unwrap();
    let slices: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let prints: Vec<&Value> =
        slices.iter().filter_map(|line| line.get("slice")).map(|slice| &slice["fingerprint"]).collect();
    assert_eq!(prints.len() % 20, 0);
    assert!(
        prints.chunks(4).all(|block| block.iter().all(|print| *print == block[0])),
        "all slices of a block send the same"
    );
    assert_ne!(prints[0], prints[4], "another block sends something else");
}

/// Two more system calls are found: on sockets by `perf`, where it may count, and on files by the kernel's own account.
#[test]
fn two_more_calls_are_found() {
    let Some(planted) = program("longhaul-service-planted") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (output, judgement) = gate(folder.path(), &planted, Some("two-more-syscalls"));
    if !is_valid(&output, &judgement) {
        return;
    }
    assert_eq!(word(&judgement, "fileCalls"), "worse", "{}", said(&output));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}
