//! Tests that late events of a queue do not count as lost, and that an operator's own slowness is not blamed on its
//! client library. The report names each cause for one operator and not for another.

use crate::support::{Soak, findings, has_python, soak_text};

const SCENARIO: &str = include_str!("../files/behind.yaml");
const OPERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/behind_operator.py");

fn play(mode: &str, population: u32, rate: &str) -> Option<Soak> {
    if !has_python() {
        return None;
    }
    let text = SCENARIO.replace("OPERATOR", OPERATOR).replace("MODE", mode);
    Some(soak_text(&text.replace("POPULATION", &population.to_string()).replace("RATE", rate), &[]))
}

/// Checks the cause at the top of the run's summary, with parts of the cause's sentence.
fn says(soak: &Soak, cause: &str, parts: &[&str]) {
    let markdown = std::fs::read_to_string(soak.record().join("report.md")).unwrap();
    let line = markdown.lines().find(|line| line.contains(cause)).unwrap_or_else(|| panic!("{cause}:\n{markdown}"));
    // This is the text as a reader of the page sees it.
    let line = line.replace('\\', "");
    for part in parts {
        assert!(line.contains(part), "no `{part}` in: {line}");
    }
    assert!(!markdown.contains("lost in the client"), "{markdown}");
}

#[test]
#[ignore = "slow"]
fn an_operator_that_is_behind_has_lost_nothing() {
    let Some(soak) = play("limited", 40, "4/s") else { return };
    assert_eq!((soak.code(), soak.broken()), (Some(2), vec![]), "{}", soak.story());
    assert!(findings(&soak.verdict(), "inconclusive").contains(&"events.missed".to_owned()), "{}", soak.story());
    let said = soak.stdout();
    assert!(said.contains(" still waited in the subject's queue, which needs "), "{said}");
    assert!(said.contains(" requests a second; `rate: ") && said.contains("/s` fits"), "{said}");
    says(&soak, "still in the subject's queue", &[" still waited", "more at its "]);
}

/// Objects are deleted while they wait in the queue of an operator, and its annotation cannot show that it saw them. A
/// slow operator that loses nothing is undecided. The same operator fails if it ignores every fifth object.
#[test]
#[ignore = "slow"]
fn an_object_that_is_deleted_in_the_queue_is_not_lost() {
    if !has_python() {
        return;
    }
    let played = |mode: &str| {
        let text = SCENARIO.replace("OPERATOR", OPERATOR).replace("MODE", mode);
        let text =
            text.replace("POPULATION", "20").replace("RATE", "4/s").replace("missed: 0", "missed: 0, deadline: 4s");
        let mixed = text.replace("{create: 1, update: 5, delete: 1}", "{create: 1, delete: 1}");
        soak_text(&mixed.replace("steady: 8s, drain: 10s", "steady: 25s, drain: 20s"), &[])
    };
    let (slow, passes) = std::thread::scope(|scope| {
        let slow = scope.spawn(|| played("limited"));
        let passes = played("passes");
        (slow.join().unwrap(), passes)
    });
    assert_eq!((slow.code(), slow.broken()), (Some(2), vec![]), "{}", slow.story());
    let said = slow.stdout();
    assert!(said.contains(" were deleted while they waited in the subject's queue; `rate: "), "{said}");
    assert_eq!((passes.code(), passes.broken()), (Some(1), vec!["events.missed".to_owned()]), "{}", passes.story());
}

/// The slow operator passes if the run first measures the rate that the operator can sustain.
#[test]
#[ignore = "slow"]
fn a_rate_that_is_found_out_leaves_nothing_behind() {
    let Some(soak) = play("limited", 8, "auto") else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let said = soak.stdout();
    assert!(
        said.contains("`churn.rate` is `auto`: the subject sustained ") && said.contains("repeat it with `rate: "),
        "{said}"
    );
    let manifest = std::fs::read_to_string(soak.record().join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let rate = manifest["churnRatePerSecond"].as_f64().unwrap();
    assert!((0.2..=2.0).contains(&rate), "{rate}");
}

#[test]
#[ignore = "slow"]
fn an_operator_that_passes_objects_by_has_lost_them() {
    let Some(soak) = play("passes", 20, "4/s") else { return };
    assert_eq!((soak.code(), soak.broken()), (Some(1), vec!["events.missed".to_owned()]), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn a_write_that_is_refused_is_named() {
    let Some(soak) = play("refused", 10, "1/s") else { return };
    let parts = [" of configmaps ", "-config was refused ", " with 422, last at ", "Invalid value"];
    says(&soak, "after a refused write", &parts);
}

#[test]
#[ignore = "slow"]
fn a_lease_that_is_refused_is_named() {
    if !has_python() {
        return;
    }
    // It is ready with its first request, which is for the Lease. Otherwise the run would end early, because nothing
    // churned was requested.
    let command = format!("{{run: [python3, {OPERATOR:?}, unled], ready: {{request: first}}}}");
    let text = SCENARIO.replace("[python3, OPERATOR, MODE]", &command);
    let soak = soak_text(&text.replace("POPULATION", "10").replace("RATE", "1/s"), &[]);
    let parts = ["the subject never became the leader: its Lease in the namespace `nowhere` was refused ", "not found"];
    says(&soak, "because the subject never became the leader", &parts);
}

#[test]
#[ignore = "slow"]
fn a_workload_that_does_not_become_ready_is_named() {
    let Some(soak) = play("workload", 10, "1/s") else { return };
    says(
        &soak,
        "waiting for a workload that is not ready",
        &["the subject made deployments.apps ", "nothing in this control plane"],
    );
}
