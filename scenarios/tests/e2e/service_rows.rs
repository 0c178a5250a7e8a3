//! Tests the built-in service against the documented bugs that it once had.

use serde_json::Value;

use crate::support::{longhaul, program};

/// The names of the scenarios of the service's former bugs, each with an HTTP version.
const ROWS: [(&str, &str); 3] = [
    // It insisted on a version that the restored server had not reached, and refused older lists.
    ("etcd-restore-rewind", "1"),
    ("too-large-rv-loop", "1"),
    // It took an empty HTTP/2 frame for a sign of life.
    ("events-empty-200", "2"),
];

#[test]
#[ignore = "slow"]
fn the_service_passes_the_bugs_that_it_had() {
    if program("longhaul-service").is_none() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    // All run at once: each is a story of half a minute that mostly waits.
    let play = |(id, http): (&str, &str)| {
        let mut run = longhaul(&["soak", &format!("bugs/{id}"), "--json", "--http", http, "--runs"]);
        let output = run.arg(out.path()).output().unwrap();
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), outcome)
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = ROWS
            .into_iter()
            .map(|row| {
                scope.spawn({
                    let play = &play;
                    move || play(row)
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for (code, outcome) in outcomes {
        assert_eq!(code, Some(0), "{outcome:#}");
    }
    // The service's general promises are judged even if the row does not ask for them.
    let verdicts = std::fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path().join("verdict.json"));
    for path in verdicts {
        let verdict: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for promise in ["events.hotLoop", "requests.blind", "descriptors.ceiling"] {
            let findings = verdict["findings"].as_array().unwrap();
            assert!(findings.iter().any(|finding| finding["budget"] == promise), "{promise} in {}", path.display());
        }
    }
}
