//! Tests of scripted writes, of faults that wait for hits of other faults, and of documented bugs: the verdict, the
//! printed events of the run, and the exit code.

use std::path::Path;

use serde_json::Value;

use crate::support::{Soak, commits, longhaul, program, rows, soak};

fn file(name: &str) -> String {
    format!("{}/tests/files/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a scenario with a command as subject. Returns the exit code and the output of `--json`.
fn repro(name: &str, arguments: &[&str], command: &[&str]) -> (Option<i32>, Value, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let mut run = longhaul(&["soak", &file(name), "--json", "--runs"]);
    run.arg(out.path()).args(arguments).arg("--").args(command);
    let output = run.output().unwrap();
    let outcome = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    });
    (output.status.code(), outcome, out)
}

/// Runs a scenario without changes of its file.
fn run(name: &str, arguments: &[&str]) -> Option<Soak> {
    program("example-watcher")?;
    let file = file(name);
    Some(soak(&[&[file.as_str()], arguments].concat()))
}

#[test]
#[ignore = "slow"]
fn a_script_is_written_as_it_says_and_only_what_is_watched_is_judged() {
    let Some(soak) = run("script.yaml", &["--keep-events"]) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let commits = commits(&soak.record());
    let first = commits.iter().filter(|commit| commit["tMs"] == 0).count();
    assert_eq!(first, 22, "the first objects come before the times count");
    let later: Vec<String> = commits[first..]
        .iter()
        .map(|commit| format!("{} {}", commit["name"].as_str().unwrap(), commit["change"].as_str().unwrap()))
        .collect();
    assert_eq!(later, ["a modified", "a modified", "a modified", "b deleted", "b added", "c added", "d added"]);
    // The fault and the steps waited for their hits.
    let faults = soak.rows("faults.jsonl");
    let time = |id: &str, event: &str| {
        let row = faults.iter().find(|row| row["id"] == id && row["event"] == event);
        row.unwrap_or_else(|| panic!("no {event} of {id}: {}", soak.story()))["tMs"].as_u64().unwrap()
    };
    assert!(time("2-http-error", "started") >= time("1-watch-end", "hit"));
    let deleted = commits.iter().find(|commit| commit["change"] == "deleted").unwrap();
    assert!(deleted["tMs"].as_u64().unwrap() >= time("2-http-error", "hit") + 100);
}

#[test]
#[ignore = "slow"]
fn a_refused_write_ends_the_run_and_names_its_step() {
    if program("example-watcher").is_none() {
        return;
    }
    let text = std::fs::read_to_string(file("gone.yaml")).unwrap().replace("update: a", "create: a");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refused.yaml");
    std::fs::write(&path, text).unwrap();
    let soak = soak(&[path.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(3), "{}", soak.story());
    let said = soak.stdout();
    assert!(said.contains("step 1 of the script (`create: a`)") && said.contains("HTTP 409"), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn a_client_that_does_not_list_again_is_named_with_the_story_of_it() {
    let Some(planted) = program("example-watcher-planted") else { return };
    let planted = planted.to_str().unwrap();
    let (code, outcome, _out) = repro("gone.yaml", &[], &["env", "LONGHAUL_PLANTED_BUG=ignore-410", planted]);
    assert_eq!(code, Some(1), "{outcome:#}");
    let words: Vec<&str> = outcome["words"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(words.contains(&"missed") && words.contains(&"ghost"), "{outcome:#}");
    assert_eq!((outcome["row"].as_str(), outcome["verdict"].as_str()), (Some("15"), Some("fail")));
    let story: Vec<&str> = outcome["story"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let story = story.join("\n");
    for said in ["committed and NEVER SEEN: c added", "[200 with ERROR 410]", "fault watch-410"] {
        assert!(story.contains(said), "the story lacks `{said}`:\n{story}");
    }
    assert!(outcome["noticedMs"].is_u64(), "{outcome:#}");
    assert!(Path::new(outcome["record"].as_str().unwrap()).join("report.html").is_file());
}

#[test]
#[ignore = "slow"]
fn the_clean_client_passes_the_same() {
    if program("example-watcher").is_none() {
        return;
    }
    let (code, outcome, _out) = repro("gone.yaml", &[], &["example-watcher"]);
    assert_eq!((code, outcome["verdict"].as_str()), (Some(0), Some("pass")), "{outcome:#}");
    assert_eq!(
        (outcome["words"].as_array().map(Vec::len), outcome["notHit"].as_array().map(Vec::len)),
        (Some(0), Some(0))
    );
    assert!(outcome["observedMs"].as_u64().is_some(), "{outcome:#}");
}

#[test]
#[ignore = "slow"]
fn a_fault_that_no_request_meets_proves_nothing() {
    if program("example-watcher").is_none() {
        return;
    }
    let (code, outcome, out) = repro("not-hit.yaml", &[], &["example-watcher"]);
    assert_eq!(code, Some(2), "{outcome:#}");
    assert_eq!(outcome["notHit"], serde_json::json!(["http-error"]), "{outcome:#}");
    let output = longhaul(&["soak", &file("not-hit.yaml"), "-q", "--runs"])
        .arg(out.path())
        .args(["--", "example-watcher"])
        .output();
    let said = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
    assert!(said.contains("not hit: while "), "{said}");
}

#[test]
#[ignore = "slow"]
fn the_service_can_be_held_to_one_version_of_http() {
    if program("longhaul-service").is_none() {
        return;
    }
    let text = std::fs::read_to_string(file("gone.yaml")).unwrap();
    let service = text.replace("command: [example-watcher]", "service: {}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.yaml");
    std::fs::write(&path, service).unwrap();
    for http in ["1", "2"] {
        let output = longhaul(&["soak", path.to_str().unwrap(), "--json", "--http", http, "--runs"])
            .arg(folder.path())
            .output()
            .unwrap();
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{outcome:#}");
        let record = Path::new(outcome["record"].as_str().unwrap()).to_owned();
        let requests = rows(&record, "requests.jsonl");
        let versions: Vec<String> =
            requests.iter().filter(|row| row["kind"] == "request").map(|row| row["http"].to_string()).collect();
        assert!(!versions.is_empty() && versions.iter().all(|version| version == http), "{http}: {versions:?}");
    }
}

#[test]
#[ignore = "slow"]
fn an_unknown_bug_is_named_with_the_nearest_known_one() {
    let output = longhaul(&["soak", "bugs/no-such-bug-anywhere"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(
        said.contains("there is no bug `no-such-bug-anywhere`") && said.contains("`longhaul show library`"),
        "{said}"
    );
    let list = longhaul(&["show", "library", "--json"]).output().unwrap();
    let scenarios: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
    let Some(name) = scenarios.last().and_then(|bug| bug["id"].as_str()) else { return };
    let output = longhaul(&["soak", &format!("bugs/{name}x")]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("did you mean `bugs/{name}`?")), "{said}");
}

/// After a restore from a backup, newer objects are gone and changed objects have their older version again. After the
/// restore, a client that lists again sees these changes, and a client that watches from the old revision sees none.
#[test]
#[ignore = "slow"]
fn a_store_that_goes_back_in_time_is_judged_by_what_it_holds_then() {
    let Some(soak) = run("rewind.yaml", &[]) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let text = std::fs::read_to_string(file("rewind.yaml")).unwrap().replace("newer: gone", "newer: silent");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("silent.yaml");
    std::fs::write(&path, text).unwrap();
    let silent = crate::support::soak(&[path.to_str().unwrap()]);
    silent.fails_by(&["events.ghost", "events.missed"]);
}

/// Runs the scenario of a library bug with a command as subject. Returns the output of `--json`.
fn bug(arguments: &[&str], command: &[&str]) -> Value {
    let out = tempfile::tempdir().unwrap();
    let mut run = longhaul(&["soak", "bugs/bad-line-swallowed", "--json", "--runs"]);
    let output = run.arg(out.path()).args(arguments).arg("--").args(command).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    })
}

/// A documented bug can run with objects of the kind that a controller watches. The objects in such a run are generated
/// from the definition of the kind.
#[test]
#[ignore = "slow"]
fn a_documented_bug_is_played_with_a_kind_of_ones_own() {
    let Some(client) = program("planted-client") else { return };
    let client = client.to_str().unwrap();
    let definition = file("stranger/memcached-crd.yaml");
    let own = ["--manifests", &definition, "--resource", "memcacheds.cache.example.com/v1"];
    let clean = bug(&own, &[client]);
    assert_eq!(clean["verdict"], "pass", "{clean}");
    let story = clean["story"].to_string();
    assert!(story.contains("memcacheds") && !story.contains("packages"), "{story}");
    let planted = bug(&own, &[client, "--mistake", "swallows-bad-lines"]);
    assert_eq!(planted["verdict"], "fail", "{planted}");
}

/// If a client watches another resource than the written one, the message names both.
#[test]
#[ignore = "slow"]
fn a_client_that_watches_something_else_is_told_what() {
    let Some(client) = program("planted-client") else { return };
    let told = bug(&[], &["env", "LONGHAUL_WATCH=configmaps/v1", client.to_str().unwrap()]);
    let end = told["story"].as_array().unwrap().last().unwrap().as_str().unwrap();
    let says =
        "the client has never listed or watched packages.longhaul.dev; it watches configmaps: `--resource` writes";
    assert!(end.contains(says), "{told}");
}

#[test]
#[ignore = "slow"]
fn what_cannot_be_written_is_refused_before_anything_starts() {
    let output = longhaul(&["soak", "bugs/bad-line-swallowed", "--resource", "caches.example.com/v1", "--", "true"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{text}");
    assert!(text.contains("cannot be written") && text.contains("--manifests FILE"), "{text}");
}
