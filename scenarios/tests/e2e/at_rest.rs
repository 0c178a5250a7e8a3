//! What the objects of the control plane tell of a subject: whether it comes to rest, lets go, and makes no child twice. Each mistake is caught by
//! its own judge and by no other, and the clean twin passes.

use std::io::Write;

use crate::support::{Soak, soak};

const SCENARIO: &str = include_str!("../files/witness.yaml");
const OPERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small_operator.py");
/// Nothing is asked for but what the witness needs: the rest is judged by default.
const UNASKED: &str = "{unseen: 0}";
const ANNOTATION: &str = "{kind: status, annotation: example.com/seen}";
const LABEL: &str = "{kind: children}\n  children: {resource: configmaps/v1, by: {label: example.com/package-uid}}";

/// Runs the small operator with a drain that shows what goes on slowly as well.
fn play(witness: &str, mode: &str, budgets: &str) -> Option<Soak> {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: needs python3");
        return None;
    }
    let command = [OPERATOR].into_iter().chain(mode.split(' ')).collect::<Vec<_>>().join(", ");
    let text = SCENARIO.replace("drain: 7s", "drain: 12s").replace("OPERATOR", &command);
    let text = text.replace("WITNESS", witness).replace("BUDGETS", budgets);
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    Some(soak(&[file.path().to_str().unwrap()]))
}

/// The verdict and the text of a finding.
fn said(soak: &Soak, budget: &str) -> (String, String) {
    let verdict = soak.verdict();
    let findings = verdict["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["budget"] == budget);
    let found = found.unwrap_or_else(|| panic!("{}", soak.story()));
    (found["verdict"].as_str().unwrap().to_owned(), found["text"].as_str().unwrap().to_owned())
}

fn passes(witness: &str, mode: &str, budgets: &str, judged: &[&str]) {
    let Some(soak) = play(witness, mode, budgets) else { return };
    assert_eq!(soak.code(), Some(0), "{mode}: {}", soak.story());
    for budget in judged {
        assert_eq!(said(&soak, budget).0, "pass", "{}", soak.story());
    }
}

/// The text of the one finding that is broken.
fn breaks(witness: &str, mode: &str, budgets: &str, broken: &str) -> Option<String> {
    let soak = play(witness, mode, budgets)?;
    assert_eq!(soak.code(), Some(1), "{mode}: {}", soak.story());
    assert_eq!(soak.broken(), [broken], "{mode}: {}", soak.story());
    Some(said(&soak, broken).1)
}

#[test]
#[ignore = "slow"]
fn who_writes_when_nobody_else_does_is_found_with_field_and_manager() {
    passes(ANNOTATION, "annotation", UNASKED, &["writes.steady", "finalizers.stuck"]);
    let Some(text) = breaks(ANNOTATION, "annotation restless", UNASKED, "writes.steady") else { return };
    assert!(text.contains("went on writing"), "{text}");
    assert!(text.contains("changing /metadata/annotations/example.com~1seen-at"), "{text}");
    assert!(text.contains("as field manager `"), "{text}");
}

#[test]
#[ignore = "slow"]
fn a_child_that_is_made_twice_is_found_although_it_was_tidied_up() {
    passes(LABEL, "label", UNASKED, &["children.excess", "writes.steady"]);
    let Some(text) = breaks(LABEL, "label twice", UNASKED, "children.excess") else { return };
    assert!(text.contains("had 2 configmaps instead of 1"), "{text}");
}

/// When nobody writes any more, nothing but its own watch of the children tells a subject what became of them.
#[test]
#[ignore = "slow"]
fn drift_after_the_load_shows_who_looks_after_children() {
    let drifts = "by: {label: example.com/package-uid}, drift: [{afterLoad: 1s, share: 0.5}, {afterLoad: 1s, share: 0.3, edit: {data: {generation: drifted}}}]}";
    let witness = LABEL.replace("by: {label: example.com/package-uid}}", drifts);
    let budgets = "{unseen: 0, restored: true}";
    passes(&witness, "kept", budgets, &["events.restored", "children.excess", "writes.steady"]);
    let Some(text) = breaks(&witness, "label", budgets, "events.restored") else { return };
    assert!(text.contains("have too few children"), "{text}");
}
