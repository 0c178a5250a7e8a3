//! Runs `longhaul soak` with the scenarios for the API that scales Deployments. Soaks without a bug pass, and each
//! planted bug breaks the budget for this bug.

use crate::support::{Soak, program, soak};

fn clean(name: &str) -> Option<Soak> {
    let service = program("longhaul-service")?;
    Some(soak(&[name, "--service", service.to_str().unwrap()]))
}

fn plant(bug: &str) -> Option<Soak> {
    let service = program("longhaul-service-planted")?;
    Some(soak(&["calibrate-replicas", "--plant", bug, "--service", service.to_str().unwrap()]))
}

/// Checks that a planted bug breaks this budget, with this sentence in the finding.
fn caught(bug: &str, budget: &str, sentence: &str) {
    let Some(soak) = plant(bug) else { return };
    soak.fails_by(&[budget]);
    assert!(soak.stdout().contains(sentence), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn the_clean_twin_passes_and_was_asked_everything() {
    let Some(soak) = clean("calibrate-replicas") else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let budgets = crate::support::findings(&soak.verdict(), "pass");
    for budget in ["api.wrong", "api.lost", "api.staleness", "api.letIn", "api.errors", "validity.callRate"] {
        assert!(budgets.contains(&budget.to_owned()), "{budget} was judged: {}", soak.story());
    }
}

#[test]
#[ignore = "slow"]
fn what_is_told_from_before_a_relist_is_stale() {
    caught("serves-stale-after-relist", "api.staleness", "over the limit of 4s");
}

#[test]
#[ignore = "slow"]
fn a_revoked_certificate_that_is_let_in_is_found() {
    caught("accepts-revoked", "api.letIn", "let in: revoked: 200 OK");
}

#[test]
#[ignore = "slow"]
fn a_write_that_was_said_to_be_stored_and_was_not_is_lost() {
    caught("lost-update", "api.lost", "which was never committed");
}

/// While the API server is away, reads return the last known replica counts with the age of the counts. After the
/// outage of the API server, replica counts are fresh again.
#[test]
#[ignore = "slow"]
fn nightly_counts_are_told_while_the_api_server_is_away() {
    let Some(soak) = clean("replicas-apiserver-down") else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let oldest_us = |row: &serde_json::Value| row["calls"]["staleness"]["maxUs"].as_u64().unwrap_or(0);
    let oldest: Vec<u64> = soak.rows("intervals.jsonl").iter().map(oldest_us).collect();
    assert!(oldest.iter().any(|us| *us > 5_000_000), "what was told grew old: {oldest:?}");
    assert!(oldest.iter().rev().take(3).all(|us| *us < 1_000_000), "and young again: {oldest:?}");
}
