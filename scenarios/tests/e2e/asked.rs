//! What a client asks is judged: each mistake of the planted client gets its word from its requests alone, and the client without
//! the mistake passes the same scenario.

use std::io::Write as _;

use serde_json::json;

use crate::support::{Soak, program, soak};

/// One mistake, in the scenario that shows it.
struct Case {
    /// Arguments of the client in both runs.
    arguments: &'static [&'static str],
    mistake: &'static str,
    faults: serde_json::Value,
    requests: serde_json::Value,
    word: &'static str,
}

fn run(case: &Case, mistake: Option<&str>) -> Option<Soak> {
    let client = program("planted-client")?;
    let mut command = vec![client.to_str().unwrap()];
    command.extend(case.arguments);
    if let Some(mistake) = mistake {
        command.extend(["--mistake", mistake]);
    }
    // JSON is YAML.
    let scenario = json!({
        "apiVersion": "longhaul/v1", "name": "asked", "description": "What does the client ask?", "seed": 1,
        "phases": {"warmUp": "1s", "steady": "9s", "drain": "4s"},
        "subject": {"command": command, "witness": {"kind": "http"}},
        "script": {
            "resource": "packages.longhaul.dev/v1alpha1", "objects": ["a", "b"],
            "steps": [{"at": "1s", "create": ["c"]}, {"at": "9s", "update": "a"}],
        },
        "faults": case.faults,
        "budgets": {"requests": case.requests},
    });
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(scenario.to_string().as_bytes()).unwrap();
    Some(soak(&[file.path().to_str().unwrap()]))
}

fn shows(case: &Case) {
    let (planted, clean) = std::thread::scope(|scope| {
        let clean = scope.spawn(|| run(case, None));
        (run(case, Some(case.mistake)), clean.join().unwrap())
    });
    let (Some(planted), Some(clean)) = (planted, clean) else { return };
    assert_eq!(clean.code(), Some(0), "without the mistake: {}", clean.story());
    assert_eq!(planted.verdict()["words"], json!([case.word]), "{}: {}", case.mistake, planted.story());
}

#[test]
#[ignore = "slow"]
fn a_client_that_keeps_a_refused_revision() {
    shows(&Case {
        arguments: &[],
        mistake: "keeps-rv-after-410",
        faults: json!([{"name": "watch-410", "at": "4s", "resource": "packages"}]),
        requests: json!({"staleResume": 0}),
        word: "wrong-resource-version",
    });
}

#[test]
#[ignore = "slow"]
fn a_client_that_stops_at_the_end_of_a_watch() {
    shows(&Case {
        arguments: &[],
        mistake: "gives-up-silently-at-end",
        faults: json!([{"name": "watch-end", "at": "4s", "resource": "packages"}]),
        requests: json!({"blind": "5s"}),
        word: "blind",
    });
}

#[test]
#[ignore = "slow"]
fn a_client_that_watches_without_the_revision_of_its_list() {
    shows(&Case {
        arguments: &[],
        mistake: "watches-without-rv",
        faults: json!([{"name": "watch-reset", "at": "4s", "resource": "packages"}]),
        requests: json!({"unanchored": 0}),
        word: "unanchored-watch",
    });
}

#[test]
#[ignore = "slow"]
fn a_client_that_asks_again_at_once_after_an_empty_answer() {
    shows(&Case {
        arguments: &[],
        mistake: "hot-loop-on-empty",
        faults: json!([
            {"name": "empty-200", "at": "3s", "for": "5s", "resource": "packages"},
            {"name": "watch-end", "at": "3s", "resource": "packages"},
        ]),
        requests: json!({"hotLoop": "3/s"}),
        word: "hot-loop",
    });
}

#[test]
#[ignore = "slow"]
fn a_client_that_has_everything_sent_again() {
    shows(&Case {
        arguments: &["--streaming-lists"],
        mistake: "asks-initial-events-again",
        faults: json!([{"name": "watch-end", "at": "4s", "resource": "packages"}]),
        requests: json!({"initialEvents": 1}),
        word: "replayed",
    });
}

#[test]
#[ignore = "slow"]
fn a_client_that_leaves_a_silent_watch_open() {
    shows(&Case {
        arguments: &["--http", "1"],
        mistake: "watch-not-closed",
        faults: json!([{"name": "silent-watch", "at": "500ms", "for": "3s", "resource": "packages", "newStreams": "healthy"}]),
        requests: json!({"openWatches": 1}),
        word: "watch-leak",
    });
}

#[test]
#[ignore = "slow"]
fn a_client_that_makes_a_connection_for_every_reconnect() {
    shows(&Case {
        arguments: &["--http", "2"],
        mistake: "connection-per-reconnect",
        // Watches that open meanwhile end as well.
        faults: json!([{"name": "watch-end", "at": "2s", "for": "6s", "resource": "packages"}]),
        requests: json!({"connections": {"open": 2}}),
        word: "connection-leak",
    });
}
