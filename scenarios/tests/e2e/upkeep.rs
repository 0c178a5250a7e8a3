//! Tests of the built-in service during faults of the registry, restarts and new certificates. The tests run shortened
//! scenarios of the library, and for each a changed scenario that must fail.

use serde_json::{Value, json};

use crate::support::{Soak, program, soak};

/// Runs a scenario of the library, changed by a JSON merge patch.
fn run(text: &str, patch: &Value) -> Option<Soak> {
    let service = program("longhaul-service")?;
    let mut scenario: Value = serde_saphyr::from_str(text).unwrap();
    merge(&mut scenario, patch);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.yaml");
    std::fs::write(&file, scenario.to_string()).unwrap();
    Some(soak(&[file.to_str().unwrap(), "--service", service.to_str().unwrap()]))
}

/// Runs a scenario with each of two patches in parallel, because each run mostly waits.
fn both(text: &str, one: &Value, other: &Value) -> Option<(Soak, Soak)> {
    std::thread::scope(|scope| {
        let one = scope.spawn(|| run(text, one));
        let other = run(text, other);
        Some((one.join().unwrap()?, other?))
    })
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

/// The rows of `faults.jsonl` that have this event.
fn rows(soak: &Soak, event: &str) -> Vec<Value> {
    soak.rows("faults.jsonl").into_iter().filter(|row| row["event"] == event).collect()
}

#[test]
#[ignore = "slow"]
fn an_outage_of_the_registry_refuses_what_nobody_knows_and_a_cache_knows_most() {
    let text = include_str!("../../library/registry-down.yaml");
    let ttl = |ttl: &str| {
        json!({
            "phases": {"warmUp": "4s", "steady": "5s", "drain": "1s"},
            "faults": [{"name": "registry-down", "at": "5s", "for": "2s"}],
            "registry": {"images": 40},
            "admission": {"rate": "60/s"},
            "subject": {"service": {"settings": {"resolve": {"cache": {"ttl": ttl}}}}},
            "budgets": {"admission": {"p50": "2s"}, "registry": {"unavailable": 15}},
        })
    };
    let Some((with, without)) = both(text, &ttl("60s"), &ttl("1ms")) else { return };
    assert_eq!(with.code(), Some(0), "{}", with.story());
    let canaries: Vec<Value> = ["canaryBefore", "canaryAfter"].iter().flat_map(|event| rows(&with, event)).collect();
    assert!(canaries.len() == 2 && canaries.iter().all(|row| row["ok"] == true), "{canaries:?}");
    assert!(rows(&with, "ended")[0]["hits"].as_u64() > Some(0), "{}", with.story());
    assert_eq!(without.broken(), ["registry.unavailable"], "{}", without.story());
}

#[test]
#[ignore = "slow"]
fn restarts_lose_no_call_unless_a_process_goes_before_its_address_does() {
    let text = include_str!("../../library/rolling-restart.yaml");
    let short = |lag: &str, drain: &str| {
        json!({
            "phases": {"warmUp": "1s", "steady": "7s", "drain": "1s"},
            "subject": {"service": {"settings": {"shutdown": {"drain": drain}}}},
            "faults": [{"name": "subject-restart", "at": "1s", "count": 2, "pause": "3s", "lag": lag}],
            "admission": {"rate": "60/s", "callsPerConnection": 10},
            // Only the end of the calls is judged, because machines with two runs and other tests are slow.
            "budgets": {"admission": {"p50": "2s"}},
        })
    };
    let Some((right, early)) = both(text, &short("300ms", "5s"), &short("2500ms", "0s")) else { return };
    assert_eq!(right.code(), Some(0), "{}", right.story());
    assert_eq!(rows(&right, "ended")[0]["hits"], 2, "{}", right.story());
    assert_eq!(early.broken(), ["admission.errors"], "{}", early.story());
}
