//! Runs the library of documented bugs against the service's watch of Deployments: no replica count is missed.
//!
//! Each scenario of the library runs with its faults on `deployments`, while other clients scale Deployments. A client
//! reads all replica counts from the service repeatedly. A missed change shows as a replica count that stays old for
//! longer than the time in which a correct client recovers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use units::Span;

use crate::plays::{PlayResult, play_all, stalled};
use crate::support::{findings, program, soak};

const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/library/bugs");
/// Names of faults that these tests leave out. The fault `rewind` changes replica counts back, which is no mistake of
/// an answer. The test sends no patches, which the fault `patch` needs. The service's watch begins with a list, not
/// with initial events.
const OTHER: [&str; 4] = ["rewind", "patch", "initial-end-held", "initial-end-missing"];
/// Number of Deployments.
const DEPLOYMENTS: u64 = 40;
/// Minimum number of library scenarios that can run with Deployments. If fewer scenarios can be played, the library was
/// not read completely.
const BUGS_LEAST: usize = 50;

/// A scenario of the library whose resource is changed to Deployments. Returns `None` if the scenario's faults belong
/// to another resource.
fn for_deployments(path: &Path) -> Option<Value> {
    let mut scenario: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    if scenario["repro"]["httpVersions"].as_array().is_some_and(|versions| !versions.contains(&1.into())) {
        // The service speaks HTTP/1.1 to the API server.
        return None;
    }
    let faults = scenario["faults"].as_array_mut()?;
    for fault in faults {
        if OTHER.iter().any(|other| fault["name"] == *other || fault["on"] == *other) {
            return None;
        }
        // No Deployment is deleted, and all of them fit on a page.
        if fault["change"] == "deleted" || fault["items"].as_u64().is_some_and(|items| items >= DEPLOYMENTS) {
            return None;
        }
        match fault["resource"].as_str() {
            Some("packages") => fault["resource"] = "deployments".into(),
            Some(_) => return None,
            // It is a fault of the network, or of everything.
            None => {}
        }
    }
    let span = |value: &Value| value.as_str().map_or(Duration::ZERO, |text| text.parse::<Span>().unwrap().0);
    // The time that the library gives a good client, plus the time in which the client cannot know.
    let blind = scenario["faults"].as_array().unwrap().iter().map(|fault| span(&fault["for"])).max();
    let oldest = span(&scenario["budgets"]["events"]["deadline"]) + blind.unwrap_or_default();
    // Long enough that a change missed at the end of the story gets older than allowed.
    let steady = span(&scenario["phases"]["steady"]) + oldest + Duration::from_secs(2);
    scenario["phases"]["steady"] = Span(steady).to_string().into();
    scenario["phases"]["drain"] = Span(Duration::from_secs(2)).to_string().into();
    // Many run at a time, so the speed of an answer, and even its arrival, is not judged here.
    let mix = json!({"get": 16, "list": 2, "other": 2});
    scenario["api"] = json!({"rate": "20/s", "deployments": DEPLOYMENTS, "timeout": "1m", "mix": mix});
    scenario["budgets"] = json!({"api": {"staleness": Span(oldest).to_string()}});
    scenario.as_object_mut().unwrap().remove("repro");
    Some(scenario)
}

fn play(service: &Path, scenario: &Value, plant: Option<&str>) -> PlayResult {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.yaml");
    std::fs::write(&file, scenario.to_string()).unwrap();
    let mut arguments = vec![file.to_str().unwrap(), "--service", service.to_str().unwrap()];
    arguments.extend(plant.into_iter().flat_map(|plant| ["--plant", plant]));
    let soak = soak(&arguments);
    if soak.code() == Some(0) {
        return PlayResult::default();
    }
    if !soak.stdout().contains("report: ") {
        return PlayResult { wrong: soak.story(), ..PlayResult::default() };
    }
    let verdict = soak.verdict();
    let answer = json!({
        "verdict": verdict["verdict"], "reason": verdict["reason"], "id": scenario["name"], "record": soak.record(),
    });
    let wrong = format!("{:?} {}", findings(&verdict, "fail"), soak.story());
    PlayResult { wrong, stalled: stalled(&answer), ..PlayResult::default() }
}

fn scenarios() -> Vec<Value> {
    let entries = std::fs::read_dir(LIBRARY).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths.iter().filter_map(|path| for_deployments(path)).collect()
}

#[test]
#[ignore = "slow"]
fn nightly_no_count_is_missed_under_any_fault_of_the_library() {
    let Some(service) = program("longhaul-service") else { return };
    let scenarios = scenarios();
    assert!(scenarios.len() >= BUGS_LEAST, "{} scenarios", scenarios.len());
    let played = play_all(scenarios, |scenario| play(&service, scenario, None));
    println!("{}", played.summary());
    let wrong = played.wrong(|scenario| scenario["name"].to_string());
    assert!(wrong.is_empty(), "{wrong}");
}

/// A client with a bug fails the check of replica counts: its watch resumes from a refused version, and the check
/// reports the missed count.
#[test]
#[ignore = "slow"]
fn a_missed_count_would_be_seen() {
    let Some(service) = program("longhaul-service-planted") else { return };
    let scenario = for_deployments(&Path::new(LIBRARY).join("410-inside-200.yaml")).unwrap();
    let seen = play(&service, &scenario, Some("ignore-410"));
    assert!(seen.wrong.starts_with(r#"["api.staleness"]"#), "{}", seen.wrong);
}
