//! Tests of each kind of witness with a small operator. The correct operator passes, its mistakes are found, and
//! budgets for facts that the witness cannot show are undecided.

use crate::support::{Soak, findings, has_python, soak_text};

pub const SCENARIO: &str = include_str!("../files/witness.yaml");
const OPERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small_operator.py");
const NAME: &str = "children: {resource: configmaps/v1, by: {name: \"{name}-config\"}, generation: /data/generation}";
pub const LABEL: &str = "children: {resource: configmaps/v1, by: {label: example.com/package-uid}}";
const OWNER: &str = "children: {resource: configmaps/v1, by: owner, generation: /data/generation}";
const METRICS: &str = "metrics: \"http://127.0.0.1:${LONGHAUL_METRICS_PORT}/metrics\"";

/// Runs the small operator. `witness` has keys of the subject, and `mode` selects the operator's behaviour with its
/// mistake.
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

/// The expected result of a run.
#[derive(Clone, Copy)]
enum Says {
    Passes,
    /// The run breaks only this budget.
    Breaks(&'static str),
    /// Only this budget is undecided, because the witness cannot show the facts that the budget needs.
    CannotTell(&'static str),
}
use Says::{Breaks, CannotTell, Passes};

/// One run: the witness, the operator's mode, the budgets, and the expected result.
type Case<'a> = (&'a [&'a str], &'a str, &'a str, Says);

/// Runs all cases in parallel, because the run of a case mostly waits.
fn all_say(cases: &[Case]) {
    std::thread::scope(|scope| {
        let played: Vec<_> = cases.iter().map(|case| scope.spawn(|| play(case.0, case.1, case.2))).collect();
        for ((_, mode, _, says), played) in cases.iter().zip(played) {
            let Some(soak) = played.join().unwrap() else { continue };
            let undecided = || findings(&soak.verdict(), "inconclusive");
            let (code, said, expected) = match *says {
                Passes => (0, soak.broken(), vec![]),
                Breaks(budget) => (1, soak.broken(), vec![budget]),
                CannotTell(budget) => (2, undecided(), vec![budget]),
            };
            assert_eq!(
                (soak.code(), said),
                (Some(code), expected.into_iter().map(str::to_owned).collect()),
                "{mode}: {}",
                soak.story()
            );
            assert!(code != 2 || soak.stdout().contains("does not report"), "{}", soak.story());
        }
    });
}

#[test]
#[ignore = "slow"]
fn children_prove_their_parents() {
    let by_name = ["{kind: children}", NAME];
    all_say(&[
        (&by_name, "name", "{missed: 0}", Passes),
        (&by_name, "name no-create", "{missed: 0}", Breaks("events.missed")),
        (&by_name, "name no-update", "{missed: 0}", Breaks("events.missed")),
    ]);
}

/// If children do not repeat a version of their parent, they do not show updates. The garbage collector also removes
/// children with an owner, and all children disappear with their namespace.
#[test]
#[ignore = "slow"]
fn nightly_children_tell_no_more_than_they_show() {
    let by_label = ["{kind: children}", LABEL];
    all_say(&[
        (&by_label, "label no-update", "{unseen: 0}", Passes),
        (&by_label, "label", "{missed: 0}", CannotTell("events.missed")),
        (&by_label, "label no-delete", "{ghost: 0}\n  children: {orphaned: 100}", CannotTell("events.ghost")),
    ]);
    let by_owner = ["{kind: children}", OWNER];
    all_say(&[
        (&by_owner, "owner", "{missed: 0}", Passes),
        (&by_owner, "owner no-update", "{missed: 0}", Breaks("events.missed")),
        (&by_owner, "owner", "{missed: 0, ghost: 0}", CannotTell("events.ghost")),
    ]);
}

/// A scenario in which a fault delays every event from 2 s on by eight seconds, while objects are deleted. An operator
/// that handles each delayed event on arrival and removes its finalizers on request has missed nothing and is not late.
/// Every kind of witness must give these verdicts about operators with delayed events. An operator that ignores some
/// delayed events has missed these events.
const WITHHELD: &str = "phases: {warmUp: 1s, steady: 16s, drain: 9s}\nfaults:\n  - {name: event-delayed, at: 2s, resource: packages, delay: 8s}\n";

const STATUS: [&str; 1] = ["{kind: status, annotation: example.com/seen}"];
const CHILDREN: [&str; 2] = ["{kind: children}", OWNER];
const FINALIZER: [&str; 1] = ["{kind: finalizer, name: example.com/cleanup}"];

/// Runs all cases in parallel. Each case has the witness, the operator's mode, the budgets, and the budgets that must
/// be broken.
fn all_withheld(cases: &[(&[&str], &str, &str, &[&str])]) {
    let scenario = SCENARIO.replace("phases: {warmUp: 1s, steady: 8s, drain: 7s}\n", WITHHELD);
    assert!(scenario.contains("event-delayed"));
    std::thread::scope(|scope| {
        let play = |(witness, mode, budgets): (&[&str], &str, &str)| play_in(&scenario, witness, mode, budgets);
        let played: Vec<_> = cases.iter().map(|case| scope.spawn(move || play((case.0, case.1, case.2)))).collect();
        for ((_, mode, _, broken), played) in cases.iter().zip(played) {
            let Some(soak) = played.join().unwrap() else { continue };
            assert_eq!(soak.broken(), *broken, "{mode}: {}", soak.story());
            assert_eq!(soak.code(), Some(i32::from(!broken.is_empty())), "{mode}: {}", soak.story());
        }
    });
}

#[test]
#[ignore = "slow"]
fn nightly_what_a_fault_withheld_is_due_from_when_it_came() {
    all_withheld(&[
        (&STATUS, "annotation watch hold", "{missed: 0}", &[]),
        (&CHILDREN, "owner watch hold", "{missed: 0}", &[]),
        (&FINALIZER, "finalizer watch", "{ghost: 0}", &[]),
    ]);
}

#[test]
#[ignore = "slow"]
fn what_was_withheld_and_overlooked_is_missed() {
    all_withheld(&[
        (&STATUS, "annotation no-update watch hold", "{missed: 0}", &["events.missed"]),
        (&CHILDREN, "owner no-create watch hold", "{missed: 0}", &["events.missed"]),
        (&FINALIZER, "finalizer no-delete watch", "{ghost: 0}", &["events.ghost", "finalizers.stuck"]),
    ]);
}

#[test]
#[ignore = "slow"]
fn nightly_a_finalizer_proves_deletions() {
    let witness = ["{kind: finalizer, name: example.com/cleanup}"];
    all_say(&[
        (&witness, "finalizer", "{ghost: 0}", Passes),
        (&witness, "finalizer no-create", "{ghost: 0}", Breaks("events.unseen")),
        (&witness, "finalizer", "{missed: 0, ghost: 0}", CannotTell("events.missed")),
    ]);
    let Some(soak) = play(&witness, "finalizer no-delete", "{ghost: 0}") else { return };
    soak.fails_by(&["events.ghost", "finalizers.stuck"]);
}

#[test]
#[ignore = "slow"]
fn a_condition_or_an_annotation_repeats_the_generation() {
    let condition = ["{kind: status, condition: Ready}"];
    let annotation = ["{kind: status, annotation: example.com/seen}"];
    all_say(&[
        (&condition, "condition", "{missed: 0}", Passes),
        (&condition, "condition no-update", "{missed: 0}", Breaks("events.missed")),
        (&annotation, "annotation no-create", "{missed: 0}", Breaks("events.missed")),
    ]);
    all_say(&[
        (&annotation, "annotation", "{missed: 0}", Passes),
        (&annotation, "annotation", "{missed: 0, ghost: 0}", CannotTell("events.ghost")),
    ]);
}

#[test]
#[ignore = "slow"]
fn log_lines_of_a_library_name_objects() {
    let witness = ["{kind: log, preset: controller-runtime, of: Package}"];
    all_say(&[
        (&witness, "log", "{unseen: 0}", Passes),
        // This is judged by default, because no other budget can be judged.
        (&witness, "log no-create", "{}", Breaks("events.unseen")),
        (&witness, "log", "{missed: 0}", CannotTell("events.missed")),
    ]);
}

#[test]
#[ignore = "slow"]
fn series_of_metrics_prove_objects_and_deletions() {
    let witness = ["{kind: metrics, series: package_info, uid: uid}", METRICS];
    all_say(&[
        (&witness, "metrics", "{ghost: 0}", Passes),
        (&witness, "metrics no-delete", "{ghost: 0}", Breaks("events.ghost")),
        (&witness, "metrics", "{missed: 0}", CannotTell("events.missed")),
    ]);
}

#[test]
#[ignore = "slow"]
fn values_of_metrics_prove_versions() {
    let witness = ["{kind: metrics, series: package_generation, uid: uid, value: generation}", METRICS];
    all_say(&[
        (&witness, "metrics", "{missed: 0, ghost: 0}", Passes),
        (&witness, "metrics no-update", "{missed: 0}", Breaks("events.missed")),
        (&witness, "metrics no-delete", "{missed: 0, ghost: 0}", Breaks("events.ghost")),
    ]);
}
