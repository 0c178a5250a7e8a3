//! Tests of workloads that become ready because the scenario sets `workloads`. An operator that waits for its ready
//! Deployments reports `Ready`. If the workloads never become ready, the operator waits for ever.

use crate::support::{Soak, has_python, soak_text};

const OPERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/waiting_operator.py");
const SCENARIO: &str = "\
apiVersion: longhaul/v1
name: waiting
description: Does an operator that waits for its Deployments come to an end?
phases: {warmUp: 1s, steady: 10s, drain: 9s}
controlPlane: WORKLOADS
subject:
  command: [python3, OPERATOR]
  witness: {kind: status}
  children: {resource: deployments.apps/v1, by: owner}
churn:
  resource: packages.longhaul.dev/v1alpha1
  population: 8
  rate: 1/s
  mix: {create: 1, update: 2, delete: 1}
faults: FAULTS
budgets: {events: {missed: 0}}
";
const PLAYED: &str = "{workloads: {readyAfter: 300ms}}";

fn play(mode: &str, plane: &str, faults: &str) -> Option<Soak> {
    if !has_python() {
        return None;
    }
    let command = [OPERATOR, mode].join(", ");
    let text = SCENARIO.replace("OPERATOR", command.trim_end_matches(", "));
    Some(soak_text(&text.replace("WORKLOADS", plane).replace("FAULTS", faults), &[]))
}

/// Executes two runs in parallel, because each run mostly waits.
fn both(one: [&str; 3], other: [&str; 3]) -> Option<(Soak, Soak)> {
    let play = |[mode, plane, faults]: [&str; 3]| play(mode, plane, faults);
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| play(other));
        (play(one), other.join().unwrap())
    });
    Some((one?, other?))
}

#[test]
#[ignore = "slow"]
fn an_operator_that_waits_for_a_deployment_is_done_with_the_key_and_waits_without() {
    let Some((with, without)) = both(["", PLAYED, "[]"], ["", "{}", "[]"]) else { return };
    assert_eq!(with.code(), Some(0), "{}", with.story());
    for budget in ["events.missed", "events.hotLoop", "children.excess", "writes.steady"] {
        assert_eq!(with.finding(budget)["verdict"], "pass", "{}", with.story());
    }
    assert!(with.stdout().contains("the mock let workloads become ready, each after 300ms"), "{}", with.story());
    assert_eq!(without.code(), Some(2), "{}", without.story());
    assert!(without.stdout().contains(" 0 observed"), "it says nothing, because it waits: {}", without.story());
}

/// With each fault of workloads, the operator that does not wait correctly fails, and the operator that waits passes.
#[test]
#[ignore = "slow"]
fn nightly_an_operator_that_cannot_wait_is_found_by_workloads_that_are_not_ready() {
    for fault in ["{name: not-ready, at: 3s, for: 6s, share: 0.9}", "{name: flapping, at: 3s, for: 7s, period: 1500ms}"]
    {
        let faults = format!("[{fault}]");
        let Some((waits, cannot)) = both(["", PLAYED, &faults], ["impatient", PLAYED, &faults]) else { return };
        assert_eq!(waits.code(), Some(0), "{fault}: {}", waits.story());
        assert_eq!(cannot.broken(), ["events.hotLoop"], "{fault}: {}", cannot.story());
    }
}
