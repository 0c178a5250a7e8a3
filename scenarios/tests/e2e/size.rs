//! Tests of `longhaul size` with a small cache in Python: a correct one, and one with each planted mistake.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{has_python, longhaul, story};

const CACHE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/sized.py");

/// A scenario whose command a gate replaces.
const SCENARIO: &str = "\
apiVersion: longhaul/v1
name: sized
description: Does the cache need more memory?
phases: {warmUp: 0s, steady: 10s, drain: 1s}
subject: {command: [python3], witness: {kind: http}}
churn: {resource: packages.longhaul.dev/v1alpha1, population: 1, rate: 1/s, mix: {update: 1}}
";

/// Compares the memory of two caches by `longhaul gate --size`. `mistake` is the last argument of the second cache.
fn gate(folder: &Path, mistake: Option<&str>) -> (Output, Value) {
    let (file, out) = (folder.join("sized.yaml"), folder.join("gate"));
    std::fs::write(&file, SCENARIO).unwrap();
    let a = format!("python3 {CACHE} secrets");
    let b = format!("python3 {CACHE} {} secrets", mistake.unwrap_or_default());
    let mut command = longhaul(&["gate", "--size", "--objects", "2000", "--quick", "--a", &a, "--b", &b, "--out"]);
    let output = command.arg(&out).arg(&file).output().unwrap();
    let judged = std::fs::read(out.join("gate.json")).unwrap_or_default();
    (output, serde_json::from_slice(&judged).unwrap_or_default())
}

/// Two equal caches need the same memory.
#[test]
#[ignore = "slow: starts two caches 13 times"]
fn equal_builds_need_the_same_memory() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (output, judged) = gate(folder.path(), None);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let row = judged["rows"].as_array().unwrap().iter().find(|row| row["metric"] == "startMemory").unwrap();
    assert_eq!(row["word"], "same", "{row:#}");
    assert!(row["smallest"].as_f64().unwrap() < 0.2, "{row:#}");
}

/// A cache that keeps each object twice is worse in two sessions.
#[test]
#[ignore = "slow: starts two caches 25 times"]
fn a_gate_finds_a_build_that_needs_more_memory() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (output, judged) = gate(folder.path(), Some("twice"));
    assert_eq!(output.status.code(), Some(1), "{}", story(&output));
    assert!(judged["reason"].as_str().unwrap().contains("highest memory of a start"), "{judged:#}");
    assert_eq!(judged["sessions"], 2);
    assert!(folder.path().join("gate/gate.html").is_file());
}

/// Runs `longhaul size` with the cache. `words` are the arguments of the cache.
fn size(out: &Path, flags: &[&str], words: &[&str]) -> Output {
    let mut command = longhaul(&["size", "--json", "--out"]);
    command.arg(out).args(flags).args(["--", "python3", CACHE]).args(words).output().unwrap()
}

fn result(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("size.json")).unwrap()).unwrap()
}

fn findings(result: &Value) -> Vec<String> {
    let found = result["findings"].as_array().unwrap();
    found
        .iter()
        .map(|finding| finding["what"].as_str().unwrap().to_owned())
        .filter(|what| what != "kind-unrestricted")
        .collect()
}

/// A correct cache has no finding. The result has its rows, its kind and a forecast; the page and the Markdown exist. A
/// cache that keeps each object twice needs clearly more memory, and `compare` reports this difference.
#[test]
#[ignore = "slow: starts a cache nine times"]
fn who_keeps_each_object_twice_needs_more() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (clean, twice) = (folder.path().join("clean"), folder.path().join("twice"));
    let flags = ["--objects", "500,2000,6000", "--sizes", "10KiB"];
    let output = size(&clean, &flags, &["secrets"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let told = result(&clean);
    assert_eq!(told["schema"], "longhaul.size/v1");
    assert!(findings(&told).is_empty(), "{told:#}");
    let steps = told["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3, "{told:#}");
    for step in steps {
        let (figures, objects) = (&step["figures"], step["objects"].as_u64().unwrap());
        let list = figures["listBytes"].as_u64().unwrap();
        assert!((objects * 10_000..objects * 10_700 + 100_000).contains(&list), "{step:#}");
        assert!(figures["highestBytes"].as_u64() >= figures["steadyBytes"].as_u64(), "{step:#}");
        assert!(figures["relists"][0]["tookMs"].is_u64(), "{step:#}");
        assert!(figures["descriptors"].as_u64().unwrap() >= 4, "{step:#}");
    }
    assert_eq!(told["kinds"][0]["resource"], "secrets", "{told:#}");
    assert_eq!(told["curves"][0]["forecasts"][3]["objects"], 100_000);
    assert!(told["curves"][0]["forecasts"][3]["beyondTimes"].as_f64().unwrap() > 10.0);
    let each = told["curves"][0]["bytesPerObject"].as_f64().unwrap();
    assert!(each > 10_240.0, "{each}");
    let page = std::fs::read_to_string(clean.join("size.html")).unwrap();
    assert!(page.contains("<circle") && page.contains("longhaul") && clean.join("size.md").is_file());
    let output = size(&twice, &flags, &["twice", "secrets"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let both = longhaul(&["compare", "--json", clean.to_str().unwrap(), twice.to_str().unwrap()]).output().unwrap();
    assert_eq!(both.status.code(), Some(0), "{}", story(&both));
    let both: Value = serde_json::from_slice(&both.stdout).unwrap();
    let rest = |one: &&Value| one["figure"] == "memory at rest" && one["objects"] == 6_000;
    let rest = both["differences"].as_array().unwrap().iter().find(rest).unwrap();
    assert!(rest["isClear"] == true && rest["ratio"].as_f64().unwrap() > 1.25, "{both:#}");
}

/// If a program compares all objects with each other at its start, the result says that the time of the start grows
/// worse than linearly.
#[test]
#[ignore = "slow: starts a cache four times"]
fn a_quadratic_start_is_worse_than_linear() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--objects", "1000,3000,9000", "--sizes", "1KiB", "--relists", "0"];
    let output = size(&folder.path().join("a"), &flags, &["quadratic", "configmaps"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    assert_eq!(findings(&result(&folder.path().join("a"))), ["start-worse-than-linear"]);
    let output = size(&folder.path().join("b"), &flags, &["configmaps"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    assert!(findings(&result(&folder.path().join("b"))).is_empty());
}

/// A cache that keeps its old objects at each relist is reported as a leak, and a cache that drops them is not.
#[test]
#[ignore = "slow: plays four relists twice"]
fn a_leak_at_each_relist_is_found() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--objects", "3000", "--sizes", "10KiB", "--relists", "4"];
    let output = size(&folder.path().join("a"), &flags, &["leaks", "secrets"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let told = result(&folder.path().join("a"));
    assert_eq!(findings(&told), ["relist-leaks"], "{told:#}");
    let output = size(&folder.path().join("b"), &flags, &["secrets"]);
    let told = result(&folder.path().join("b"));
    assert!(findings(&told).is_empty(), "{}\n{told:#}", story(&output));
}

/// Each kind has rows of its own. The kind without a selector costs most. The result names the label selector of the
/// other kind.
#[test]
#[ignore = "slow: starts a cache six times"]
fn every_kind_has_its_cost() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("kinds");
    let flags = ["--objects", "3000", "--sizes", "10KiB", "--relists", "0"];
    let output = size(&out, &flags, &["secrets", "configmaps?labelSelector=example.com/none=1"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let told = result(&out);
    let kind = |at: usize| &told["kinds"][at];
    assert_eq!((kind(0)["resource"].as_str(), kind(1)["resource"].as_str()), (Some("secrets"), Some("configmaps")));
    assert!(kind(0)["share"].as_f64().unwrap() > 0.9, "{told:#}");
    assert_eq!(kind(0)["form"]["labels"], Value::Null);
    assert_eq!(kind(1)["form"]["labels"], "example.com/none=1");
    let unrestricted = told["findings"].as_array().unwrap().iter().find(|one| one["what"] == "kind-unrestricted");
    let sentence = unrestricted.unwrap()["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("secrets: ") && sentence.contains("requests none of them by name"), "{sentence}");
}

/// A program above its memory limit is killed, and its row says so; the row with fewer objects keeps its result. Needs
/// a cgroup.
#[test]
#[ignore = "slow: starts a cache three times"]
fn a_limit_kills_and_the_other_rows_stand() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("limit");
    let flags = ["--objects", "200,8000", "--sizes", "10KiB", "--relists", "0", "--limit", "64MiB"];
    let output = size(&out, &flags, &["secrets"]);
    let told = result(&out);
    if told["limit"]["enforcedBy"].is_null() {
        println!("skipped: needs a memory cgroup ({})", told["limit"]["whyNot"]);
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{}", story(&output));
    assert_eq!(told["steps"][0]["fate"]["how"], "lived", "{told:#}");
    assert_eq!(told["steps"][1]["fate"]["how"], "limit-killed", "{told:#}");
    assert_eq!(findings(&told), ["limit-met"]);
}

/// If the program exits or never becomes ready, a number is wrong, or the machine has too little memory, the command
/// prints the reason and no result.
#[test]
#[ignore = "slow: waits for a program that never asks"]
fn bad_input_is_said() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let said = |flags: &[&str], words: &[&str], name: &str| {
        let output = size(&folder.path().join(name), flags, words);
        assert_eq!(output.status.code(), Some(64), "{}", story(&output));
        String::from_utf8(output.stderr).unwrap()
    };
    let text = said(&["--objects", "1000000", "--sizes", "1MiB"], &["secrets"], "big");
    assert!(text.contains("objects of this size fit") && text.contains("free on this machine"), "{text}");
    assert!(said(&["--objects", "0"], &["secrets"], "none").contains("write 1 to 1,000,000"));
    let text = said(&["--patience", "3s"], &["deaf"], "deaf");
    assert!(text.contains("without any object: not ready"), "{text}");
    let text = said(&["--patience", "9s"], &["dies", "secrets"], "dies");
    assert!(text.contains("exit code 3"), "{text}");
}

/// After Ctrl-C, the result has the rows that were complete before.
#[test]
#[ignore = "slow: starts a cache until it is interrupted"]
fn an_interruption_keeps_what_was_measured() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("cut");
    let mut command = longhaul(&["size", "--objects", "100,200,300,400,500", "--sizes", "1KiB", "--out"]);
    command.arg(&out).args(["--", "python3", CACHE, "secrets"]).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let mut lines = lines.map(|line| line.unwrap());
    assert!(lines.any(|line| line.starts_with("100 objects")), "the first row ended");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{rest:?}");
    let told = result(&out);
    assert!((1..5).contains(&told["steps"].as_array().unwrap().len()), "{told:#}");
    assert!(told["notes"][0].as_str().unwrap().contains("interrupted"), "{told:#}");
}
