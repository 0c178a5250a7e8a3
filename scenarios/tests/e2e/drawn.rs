//! Tests of random faults: one fault shows a planted bug, and the client without the bug survives all faults.

use serde_json::Value;

use crate::support::{Soak, program, soak_text};

const SMALL: &str = include_str!("../files/small.yaml");
/// Two faults that each end a watch and report its revision as expired, in two different ways. The seed decides the
/// order of the two faults.
const FAULTS: &str = "faults:\n  random: {every: 5s, from: [watch-410, {name: error-event, code: 410, then: end}]}\n";

fn drawn(service: &str, more: &[&str]) -> Option<Soak> {
    let service = program(service)?;
    let planned = "faults:\n  - {name: watch-410, at: 4s, resource: packages}\n";
    assert!(SMALL.contains(planned) && SMALL.contains("steady: 9s"), "{SMALL}");
    // Ten seconds of it are left to heal.
    let text = SMALL.replace(planned, FAULTS).replace("steady: 9s", "steady: 21s");
    Some(soak_text(&text, &[&["--service", service.to_str().unwrap()][..], more].concat()))
}

/// Name, time and hits of each fault, in the order of their times.
fn struck(soak: &Soak) -> Vec<(String, u64, u64)> {
    let manifest = std::fs::read_to_string(soak.record().join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let rows = soak.rows("faults.jsonl");
    let hits = |id: &Value| rows.iter().filter(|row| row["id"] == *id).filter_map(|row| row["hits"].as_u64()).max();
    let faults = manifest["faults"].as_array().unwrap().iter();
    let fault = |fault: &Value| {
        (
            fault["name"].as_str().unwrap().to_owned(),
            fault["atMs"].as_u64().unwrap(),
            hits(&fault["id"]).unwrap_or_default(),
        )
    };
    faults.map(fault).collect()
}

#[test]
#[ignore = "slow"]
fn the_clean_service_takes_what_is_drawn() {
    let Some(soak) = drawn("longhaul-service", &[]) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let struck = struck(&soak);
    assert_eq!(struck.len(), 2, "{struck:?}");
    assert!(struck.iter().all(|(_, at_ms, hits)| (2000..13_000).contains(at_ms) && *hits > 0), "{struck:?}");
    assert_ne!(struck[0].0, struck[1].0, "each comes once before any comes again: {struck:?}");
}

/// The same seed draws the same faults at the same times. The first drawn fault is enough to show the planted bug.
#[test]
#[ignore = "slow"]
fn a_drawn_fault_shows_who_ignores_410() {
    let Some(soak) = drawn("longhaul-service-planted", &["--plant", "ignore-410"]) else { return };
    assert_eq!(soak.code(), Some(1), "{}", soak.story());
    let broken = soak.broken();
    assert!(broken.contains(&"events.missed".to_owned()), "{}", soak.story());
    assert!(broken.iter().all(|budget| budget.starts_with("events.")), "{}", soak.story());
    let struck = struck(&soak);
    assert!(struck[0].2 > 0, "{struck:?}");
    assert!(soak.stdout().contains("410"), "the summary names the cause: {}", soak.story());
}
