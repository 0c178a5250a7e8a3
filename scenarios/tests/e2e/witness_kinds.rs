//! What an operator leaves behind proves what it saw: for each kind of witness a clean one passes, its mistakes are found, and what the
//! witness cannot tell is undecided.

use crate::support::{Soak, findings, has_python, soak_text};

pub const SCENARIO: &str = include_str!("../files/witness.yaml");
const OPERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small_operator.py");
const NAME: &str = "children: {resource: configmaps/v1, by: {name: \"{name}-config\"}, generation: /data/generation}";
pub const LABEL: &str = "children: {resource: configmaps/v1, by: {label: example.com/package-uid}}";
const OWNER: &str = "children: {resource: configmaps/v1, by: owner, generation: /data/generation}";
const METRICS: &str = "metrics: \"http://127.0.0.1:${LONGHAUL_METRICS_PORT}/metrics\"";

/// Runs the operator: `witness` is one or more keys of the subject, `mode` what it does and the mistake that it makes.
fn play(witness: &[&str], mode: &str, budgets: &str) -> Option<Soak> {
    play_in(SCENARIO, witness, mode, budgets)
}

pub fn play_in(scenario: &str, witness: &[&str], mode: &str, budgets: &str) -> Option<Soak> {
    if !has_python() {
        return None;
    }
    let command = [OPERATOR].into_iter().chain(mode.split(' ')).collect::<Vec<_>>().join(", ");
    let text =
        scenario.replace("OPERATOR", &command).replace("WITNESS", &witness.join("\n  ")).replace("BUDGETS", budgets);
    Some(soak_text(&text, &[]))
}

fn passes(witness: &[&str], mode: &str, budgets: &str) {
    let Some(soak) = play(witness, mode, budgets) else { return };
    assert_eq!(soak.code(), Some(0), "{mode}: {}", soak.story());
}

fn breaks(witness: &[&str], mode: &str, budgets: &str, broken: &str) {
    let Some(soak) = play(witness, mode, budgets) else { return };
    assert_eq!(soak.code(), Some(1), "{mode}: {}", soak.story());
    assert_eq!(soak.broken(), [broken], "{mode}: {}", soak.story());
}

fn cannot_tell(witness: &[&str], mode: &str, budgets: &str, undecided: &str) {
    let Some(soak) = play(witness, mode, budgets) else { return };
    assert_eq!(soak.code(), Some(2), "{mode}: {}", soak.story());
    assert_eq!(findings(&soak.verdict(), "inconclusive"), [undecided], "{mode}: {}", soak.story());
    assert!(soak.stdout().contains("does not tell"), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn children_prove_their_parents() {
    let by_name = ["{kind: children}", NAME];
    passes(&by_name, "name", "{missed: 0}");
    breaks(&by_name, "name no-create", "{missed: 0}", "events.missed");
    breaks(&by_name, "name no-update", "{missed: 0}", "events.missed");
}

/// Without the version in them children cannot tell of updates; and others than the subject take them: the garbage collector those with an
/// owner, the end of a namespace all.
#[test]
#[ignore = "slow"]
fn nightly_children_tell_no_more_than_they_show() {
    let by_label = ["{kind: children}", LABEL];
    passes(&by_label, "label no-update", "{unseen: 0}");
    cannot_tell(&by_label, "label", "{missed: 0}", "events.missed");
    cannot_tell(&by_label, "label no-delete", "{ghost: 0}", "events.ghost");
    let by_owner = ["{kind: children}", OWNER];
    passes(&by_owner, "owner", "{missed: 0}");
    breaks(&by_owner, "owner no-update", "{missed: 0}", "events.missed");
    cannot_tell(&by_owner, "owner", "{missed: 0, ghost: 0}", "events.ghost");
}

/// From 2 s on every event comes eight seconds late, and objects go meanwhile: whoever handles each when it comes, and lets go what was asked to
/// go, has missed nothing and is late with nothing, whichever witness tells it. Whoever overlooks some has.
const WITHHELD: &str = "phases: {warmUp: 1s, steady: 16s, drain: 9s}\nfaults:\n  - {name: event-delayed, at: 2s, resource: packages, delay: 8s}\n";

fn withheld(witness: &[&str], mode: &str, budgets: &str) -> Option<Soak> {
    let scenario = SCENARIO.replace("phases: {warmUp: 1s, steady: 8s, drain: 7s}\n", WITHHELD);
    assert!(scenario.contains("event-delayed"));
    play_in(&scenario, witness, mode, budgets)
}

#[test]
#[ignore = "slow"]
fn nightly_what_a_fault_withheld_is_due_from_when_it_came() {
    let status = ["{kind: status, annotation: example.com/seen}"];
    let finalizer = ["{kind: finalizer, name: example.com/cleanup}"];
    let owner = ["{kind: children}", OWNER];
    for (witness, mode, budgets) in [
        (&status[..], "annotation watch hold", "{missed: 0}"),
        (&owner[..], "owner watch hold", "{missed: 0}"),
        (&finalizer[..], "finalizer watch", "{ghost: 0}"),
    ] {
        let Some(soak) = withheld(witness, mode, budgets) else { return };
        assert_eq!(soak.code(), Some(0), "{mode}: {}", soak.story());
    }
}

#[test]
#[ignore = "slow"]
fn what_was_withheld_and_overlooked_is_missed() {
    let status = ["{kind: status, annotation: example.com/seen}"];
    let finalizer = ["{kind: finalizer, name: example.com/cleanup}"];
    for (witness, mode, budgets, broken) in [
        (&status[..], "annotation no-update watch hold", "{missed: 0}", &["events.missed"][..]),
        (&["{kind: children}", OWNER][..], "owner no-create watch hold", "{missed: 0}", &["events.missed"]),
        (&finalizer[..], "finalizer no-delete watch", "{ghost: 0}", &["events.ghost", "finalizers.stuck"]),
    ] {
        let Some(soak) = withheld(witness, mode, budgets) else { return };
        assert_eq!(soak.broken(), broken, "{mode}: {}", soak.story());
    }
}

#[test]
#[ignore = "slow"]
fn nightly_a_finalizer_proves_deletions() {
    let witness = ["{kind: finalizer, name: example.com/cleanup}"];
    passes(&witness, "finalizer", "{ghost: 0}");
    let Some(soak) = play(&witness, "finalizer no-delete", "{ghost: 0}") else { return };
    soak.fails_by(&["events.ghost", "finalizers.stuck"]);
    breaks(&witness, "finalizer no-create", "{ghost: 0}", "events.unseen");
    cannot_tell(&witness, "finalizer", "{missed: 0, ghost: 0}", "events.missed");
}

#[test]
#[ignore = "slow"]
fn a_condition_or_an_annotation_repeats_the_generation() {
    let condition = ["{kind: status, condition: Ready}"];
    passes(&condition, "condition", "{missed: 0}");
    breaks(&condition, "condition no-update", "{missed: 0}", "events.missed");
    let annotation = ["{kind: status, annotation: example.com/seen}"];
    passes(&annotation, "annotation", "{missed: 0}");
    breaks(&annotation, "annotation no-create", "{missed: 0}", "events.missed");
    cannot_tell(&annotation, "annotation", "{missed: 0, ghost: 0}", "events.ghost");
}

#[test]
#[ignore = "slow"]
fn log_lines_of_a_library_name_objects() {
    let witness = ["{kind: log, preset: controller-runtime, of: Package}"];
    passes(&witness, "log", "{unseen: 0}");
    // Judged without being asked for: nothing else is left to be judged.
    breaks(&witness, "log no-create", "{}", "events.unseen");
    cannot_tell(&witness, "log", "{missed: 0}", "events.missed");
}

#[test]
#[ignore = "slow"]
fn series_of_metrics_prove_objects_and_deletions() {
    let witness = ["{kind: metrics, series: package_info, uid: uid}", METRICS];
    passes(&witness, "metrics", "{ghost: 0}");
    breaks(&witness, "metrics no-delete", "{ghost: 0}", "events.ghost");
    cannot_tell(&witness, "metrics", "{missed: 0}", "events.missed");
}

#[test]
#[ignore = "slow"]
fn values_of_metrics_prove_versions() {
    let witness = ["{kind: metrics, series: package_generation, uid: uid, value: generation}", METRICS];
    passes(&witness, "metrics", "{missed: 0, ghost: 0}");
    breaks(&witness, "metrics no-update", "{missed: 0}", "events.missed");
    breaks(&witness, "metrics no-delete", "{missed: 0, ghost: 0}", "events.ghost");
}
