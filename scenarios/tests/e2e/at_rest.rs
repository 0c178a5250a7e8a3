//! Tests of the budgets for the state of a subject's objects. The subject must come to rest, remove its finalizers,
//! create no child twice, orphan none, and leave foreign objects alone. Each mistake of the small operator breaks only
//! the budget for this mistake, and the operator without the mistake passes.

use crate::support::Soak;
use crate::witness_kinds::{LABEL as CHILDREN, SCENARIO, play_in};

/// A budget section that limits only `unseen`. The budgets that this file tests are judged even without a limit in the
/// scenario.
const UNASKED: &str = "{unseen: 0}";
const ANNOTATION: &[&str] = &["{kind: status, annotation: example.com/seen}"];
const LABEL: &[&str] = &["{kind: children}", CHILDREN];

/// Runs the small operator with a drain so long that slow activity of the operator shows too.
fn play(witness: &[&str], mode: &str, budgets: &str) -> Option<Soak> {
    play_in(&SCENARIO.replace("drain: 7s", "drain: 12s"), witness, mode, budgets)
}

/// Checks that the correct operator passes, and that `judged` is among its judged budgets. Returns the finding of the
/// only budget that the operator with the mistake breaks.
fn clean_and_mistaken(
    witness: &[&str],
    [clean, mistaken]: [&str; 2],
    budgets: &str,
    judged: &[&str],
    broken: &str,
) -> Option<String> {
    // They run side by side, because each mostly waits.
    let (clean, mistaken) = std::thread::scope(|scope| {
        let mistaken = scope.spawn(|| play(witness, mistaken, budgets));
        (play(witness, clean, budgets), mistaken.join().unwrap())
    });
    let (clean, mistaken) = (clean?, mistaken?);
    assert_eq!(clean.code(), Some(0), "{}", clean.story());
    for budget in judged {
        assert_eq!(clean.finding(budget)["verdict"], "pass", "{}", clean.story());
    }
    assert_eq!(mistaken.code(), Some(1), "{}", mistaken.story());
    assert_eq!(mistaken.broken(), [broken], "{}", mistaken.story());
    mistaken.finding(broken)["text"].as_str().map(str::to_owned)
}

#[test]
#[ignore = "slow"]
fn who_writes_when_nobody_else_does_is_found_with_field_and_manager() {
    let (modes, judged) = (["annotation", "annotation restless"], ["writes.steady", "finalizers.stuck"]);
    let Some(text) = clean_and_mistaken(ANNOTATION, modes, UNASKED, &judged, "writes.steady") else { return };
    assert!(text.contains("kept writing"), "{text}");
    assert!(text.contains("changing /metadata/annotations/example.com~1seen-at"), "{text}");
    assert!(text.contains("as field manager `"), "{text}");
}

#[test]
#[ignore = "slow"]
fn a_child_that_is_made_twice_is_found_although_it_was_tidied_up() {
    let (modes, judged) = (["label", "label twice"], ["children.excess", "writes.steady"]);
    let Some(text) = clean_and_mistaken(LABEL, modes, UNASKED, &judged, "children.excess") else { return };
    assert!(text.contains("had 2 configmaps instead of 1"), "{text}");
}

/// The harness changes children after the end of the load. Only an operator that watches its children repairs changed
/// children.
#[test]
#[ignore = "slow"]
fn drift_after_the_load_shows_who_looks_after_children() {
    let witness = ["{kind: children}", CHILDREN];
    let budgets = "{unseen: 0, restored: true}\nfaults:\n  - {name: children-drift, afterLoad: 1s, share: 0.5}\n  \
                   - {name: children-drift, afterLoad: 1s, share: 0.3, edit: {data: {generation: drifted}}}";
    let judged = ["events.restored", "children.excess", "writes.steady"];
    let Some(text) = clean_and_mistaken(&witness, ["kept", "label"], budgets, &judged, "events.restored") else {
        return;
    };
    assert!(text.contains("have too few children"), "{text}");
}

#[test]
#[ignore = "slow"]
fn who_makes_again_what_others_deleted_is_found_with_what_it_had_read() {
    let (modes, judged) = (["annotation", "annotation again"], ["objects.resurrected", "objects.deletedByOthers"]);
    let Some(text) = clean_and_mistaken(ANNOTATION, modes, UNASKED, &judged, "objects.resurrected") else { return };
    assert!(text.contains("objects again that other clients had deleted: packages.longhaul.dev lh-"), "{text}");
    assert!(text.contains("later by POST /apis/longhaul.dev/v1alpha1/namespaces/lh-"), "{text}");
    assert!(text.contains("it was no longer in the list "), "{text}");
}

#[test]
#[ignore = "slow"]
fn who_deletes_what_others_made_is_found_unless_that_is_allowed() {
    let (modes, judged) = (["annotation", "annotation reaps"], ["objects.deletedByOthers"]);
    let Some(text) = clean_and_mistaken(ANNOTATION, modes, UNASKED, &judged, "objects.deletedByOthers") else { return };
    assert!(text.contains("by DELETE /apis/longhaul.dev/v1alpha1/namespaces/lh-"), "{text}");
    let allowed = format!("{UNASKED}\n  objects: {{deletedByOthers: 1000}}");
    let Some(allowed) = play(ANNOTATION, "annotation reaps", &allowed) else { return };
    assert_eq!(allowed.finding("objects.deletedByOthers")["verdict"], "pass", "{}", allowed.story());
}

/// A child without an owner is reported as orphaned after its parent is deleted. While the parent exists, the finding
/// names the missing owner, and not only too few children.
#[test]
#[ignore = "slow"]
fn a_child_without_an_owner_is_found_behind_its_parent_and_beside_it() {
    let witness = [ANNOTATION[0], "children: {resource: configmaps/v1, by: owner}"];
    let (modes, judged) = (["annotation owned", "annotation unowned"], ["children.orphaned", "children.excess"]);
    let Some(text) = clean_and_mistaken(&witness, modes, UNASKED, &judged, "children.orphaned") else { return };
    assert!(text.contains("without an owner reference outlive"), "{text}");
    let Some(asked) = play(&witness, "annotation unowned", "{unseen: 0, restored: true}") else { return };
    asked.fails_by(&["children.orphaned", "events.restored"]);
    let text = asked.finding("events.restored")["text"].to_string();
    assert!(text.contains("have too few children (they exist, but without an owner reference)"), "{text}");
}
