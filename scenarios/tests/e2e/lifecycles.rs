//! Tests of changes that churn makes to objects after their creation, on the mock API server: each change must appear
//! in the commits. If the server refuses a kind of write, the run ends before the load begins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Soak, commits, program, soak};

/// A scenario with the churn `churn`, and the correct watch client as subject.
fn scenario(client: &std::path::Path, watches: &str, churn: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lifecycles.yaml");
    let text = format!(
        "apiVersion: longhaul/v1\nname: lifecycles\ndescription: Is every version seen?\nseed: 7\n\
         phases: {{warmUp: 1s, steady: 8s, drain: 6s}}\n\
         subject: {{command: [{}], witness: {{kind: http}}, watches: [{watches}]}}\n\
         churn:\n{churn}\nbudgets: {{events: {{missed: 0, ghost: 0, regressed: 0, converged: true}}}}\n",
        client.display()
    );
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn play(watches: &str, churn: &str) -> Option<Soak> {
    let client = program("planted-client")?;
    let (_folder, path) = scenario(&client, watches, churn);
    Some(soak(&[path.to_str().unwrap(), "--keep-events"]))
}

/// The changes of each object of a resource, in order.
fn lives(commits: &[Value], resource: &str) -> BTreeMap<String, Vec<String>> {
    let mut lives: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for commit in commits.iter().filter(|commit| commit["resource"] == resource) {
        lives
            .entry(commit["uid"].as_str().unwrap().to_owned())
            .or_default()
            .push(commit["change"].as_str().unwrap().to_owned());
    }
    lives
}

fn gone(life: &[String]) -> bool {
    life.last().is_some_and(|change| change == "deleted")
}

#[test]
#[ignore = "slow"]
fn several_resources_are_churned_at_once_and_all_are_judged() {
    let churn = "  - {resource: v1/configmaps, population: 12, rate: 20/s}\n  \
                 - {resource: packages.longhaul.dev/v1alpha1, population: 30, rate: 15/s}\n\
                 faults:\n  - {name: watch-end, at: 3s, resource: packages}\n  - {name: watch-end, at: 5s, resource: configmaps}";
    let Some(soak) = play("configmaps/v1, packages.longhaul.dev/v1alpha1", churn) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let commits = commits(&soak.record());
    for (resource, population) in [("configmaps", 12), ("packages.longhaul.dev", 30)] {
        let lives = lives(&commits, resource);
        let live = lives.values().filter(|life| !gone(life)).count();
        assert!(lives.len() > population + 20, "{resource}: {} objects", lives.len());
        // The canaries of both faults are of their own resource.
        assert!(live.abs_diff(population + 1) <= 1, "{resource}: {live} live");
    }
    let rows = std::fs::read_to_string(soak.record().join("faults.jsonl")).unwrap();
    assert_eq!(rows.matches("canaryAfter").count(), 2, "{rows}");
}

#[test]
#[ignore = "slow"]
fn finalizers_hold_objects_and_let_them_go() {
    let churn = "  resource: v1/configmaps\n  population: 20\n  rate: 20/s\n  mix: {create: 1, update: 1, delete: 1}\n  \
                 finalizers: {share: 0.5, holdFor: 700ms}\n  end: empty";
    let Some(soak) = play("configmaps/v1", churn) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let lives = lives(&commits(&soak.record()), "configmaps");
    assert!(lives.len() > 50, "{} objects", lives.len());
    assert!(lives.values().all(|life| gone(life)), "something is still there: {lives:?}");
    let commits = commits(&soak.record());
    // The objects are marked first: the last but one version came a while before the deletion.
    let mut last: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for commit in &commits {
        let at = commit["tMs"].as_u64().unwrap();
        let times = last.entry(commit["uid"].as_str().unwrap()).or_default();
        *times = (times.1, at);
    }
    let held = last.values().filter(|(before, gone)| (650..2000).contains(&(gone - before))).count();
    assert!(held * 10 > last.len() * 3, "{held} of {} were held", last.len());
}

#[test]
#[ignore = "slow"]
fn dependents_go_with_their_owner_whatever_the_policy() {
    let churn = "  resource: v1/configmaps\n  population: 15\n  rate: 15/s\n  mix: {create: 1, update: 1, delete: 1}\n  \
                 tree: {resource: v1/secrets, per: 2}\n  propagation: [Background, Foreground, Orphan]\n  end: keep";
    let Some(soak) = play("configmaps/v1, secrets/v1", churn) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let commits = commits(&soak.record());
    let live = |resource: &str| lives(&commits, resource).values().filter(|life| !gone(life)).count();
    let (parents, children) = (live("configmaps"), live("secrets"));
    assert!(parents.abs_diff(15) <= 1, "{parents} parents");
    assert_eq!(children, 2 * parents, "two below each");
    // Orphans are released before they are deleted; the others are deleted at once.
    let secrets = lives(&commits, "secrets");
    let ends: BTreeSet<usize> = secrets.values().filter(|life| gone(life)).map(Vec::len).collect();
    assert!(ends.contains(&2) && ends.contains(&3), "{ends:?}");
}

#[test]
#[ignore = "slow"]
fn collections_are_deleted_and_made_up_for() {
    let churn = "  resource: v1/configmaps\n  population: 60\n  rate: 30/s\n  \
                 mix: {create: 1, update: 4, delete: 1, deleteCollection: 1}\n  finalizers: {share: 0.3, holdFor: 300ms}";
    let Some(soak) = play("configmaps/v1", churn) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let commits = commits(&soak.record());
    let lives = lives(&commits, "configmaps");
    let live = lives.values().filter(|life| !gone(life)).count();
    assert!((52..=62).contains(&live), "{live} live");
    // One request deletes several at once.
    let mut deleted: BTreeMap<u64, u64> = BTreeMap::new();
    for commit in commits.iter().filter(|commit| commit["change"] == "deleted") {
        *deleted.entry(commit["tMs"].as_u64().unwrap() / 10).or_default() += 1;
    }
    assert!(deleted.values().any(|together| *together >= 4), "{deleted:?}");
}

#[test]
#[ignore = "slow"]
fn another_writer_writes_too() {
    for (by, changes) in [("apply", "labels"), ("update", "fields"), ("apply", "fields")] {
        let churn = format!(
            "  resource: packages.longhaul.dev/v1alpha1\n  population: 10\n  rate: 20/s\n  mix: {{}}\n  \
             also: {{fieldManager: kubectl-edit, by: {by}, changes: {changes}}}"
        );
        let Some(soak) = play("packages.longhaul.dev/v1alpha1", &churn) else { return };
        assert_eq!(soak.code(), Some(0), "{}", soak.story());
        let modified = commits(&soak.record()).iter().filter(|commit| commit["change"] == "modified").count();
        assert!(modified > 100, "{by} {changes}: {modified}");
    }
}

/// If the server refuses a write of the churn, the run ends before its first phase with the server's message and exit
/// code 3.
#[test]
#[ignore = "slow"]
fn a_refused_write_ends_the_run_before_it_begins() {
    let refused = |churn: &str, words: &[&str]| {
        let Some(soak) = play("configmaps/v1", churn) else { return };
        assert_eq!(soak.code(), Some(3), "{}", soak.story());
        let said = soak.story();
        for word in words {
            assert!(said.contains(word), "`{word}` is not in {said}");
        }
        assert!(!said.contains("steady"), "the phases began: {said}");
    };
    // The creation is refused.
    refused(
        "  {resource: v1/configmaps, population: 3, rate: 5/s, template: {kind: ConfigMap, data: {a: 3}}}",
        &["fill the population", "POST /api/v1/namespaces/"],
    );
    // An update is refused; there is none before the first phase.
    refused(
        "  {resource: v1/configmaps, population: 3, rate: 5/s, template: {kind: ConfigMap, immutable: true, data: {a: \"${revision} x\"}}}",
        &["rehearse an update", "PATCH /api/v1/namespaces/", "immutable"],
    );
    // A status write is refused for a kind without a status.
    refused(
        "  {resource: v1/configmaps, population: 3, rate: 5/s, mix: {status: 1}, template: {kind: ConfigMap, status: {a: \"${revision}\"}}}",
        &["rehearse a status", "/status: HTTP 404"],
    );
    // The other writer is refused.
    refused(
        "  {resource: v1/configmaps, population: 3, rate: 5/s, mix: {}, also: {fieldManager: kubectl-edit, changes: fields}, template: {kind: ConfigMap, immutable: true, data: {a: \"${revision} x\"}}}",
        &["rehearse a write of `also`", "immutable"],
    );
}
