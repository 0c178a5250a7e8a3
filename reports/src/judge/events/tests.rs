//! Tests that each problem in `end-state.json` leads to exactly its finding.

use crate::example::{Example, Judged as _};
use crate::judge::{DRIFT, Judgement, Verdict};
use crate::record::{
    ChildProblem, ChildProblemKind, ChildrenState, Difference, DifferenceKind, Differences, Drifted, EndState,
    FaultEvent, FaultRow, IdeaSource, Left, Objects,
};

/// The end state of a subject with a correct view and correct children.
fn state() -> EndState {
    EndState {
        resource: "packages.longhaul.dev".into(),
        source: IdeaSource::Endpoint,
        left: None,
        listed_ms: 160_040,
        read_ms: 160_020,
        readings: 1,
        listed: 500,
        believed: Some(500),
        agrees: Some(true),
        unread: None,
        differences: Differences::default(),
        examples: Vec::new(),
        children: Some(ChildrenState {
            resource: "networkpolicies.networking.k8s.io".into(),
            listed_ms: 160_030,
            parents: 500,
            wanted: 900,
            found: 900,
            ..ChildrenState::default()
        }),
        more_children: Vec::new(),
    }
}

fn judgement_of(state: Option<EndState>) -> Judgement {
    judgement_with(state, None)
}

fn judgement_with(state: Option<EndState>, drift: Option<Drifted>) -> Judgement {
    let mut example = Example::clean();
    let events = example.manifest.budgets.events.as_mut().unwrap();
    (events.converged, events.restored) = (Some(true), Some(true));
    example.faults.push(FaultRow {
        t_ms: 70_000,
        id: DRIFT.into(),
        name: DRIFT.into(),
        event: FaultEvent::Hit,
        hits: 30,
        ok: None,
        detail: None,
    });
    example.end_state = state;
    example.objects = drift.map(|drift| Objects { drift: Some(drift), ..Objects::default() });
    example.judged()
}

/// The findings that did not pass, with their texts.
fn fired(state: Option<EndState>) -> Vec<String> {
    let judgement = judgement_of(state);
    let texts = judgement.crossed().into_iter();
    texts.map(|finding| format!("{} {}: {}", finding.budget, finding.verdict.word(), finding.text)).collect()
}

#[test]
fn a_subject_that_converged_passes_and_says_by_what() {
    let judgement = judgement_of(Some(state()));
    assert_eq!(judgement.crossed().len(), 0, "{:?}", judgement.crossed());
    let text = |budget: &str| {
        let found = judgement.findings.iter().find(|finding| finding.budget == budget);
        found.map(|finding| finding.text.clone()).unwrap_or_default()
    };
    let converged = "by its own page, the subject's state equals a fresh list of 500 objects (listed at 2 min 40 s, its state read at 2 min 40 s).";
    assert_eq!(text("events.converged"), converged);
    let restored = "500 objects of packages.longhaul.dev should have children and have them: 900 of 900 networkpolicies.networking.k8s.io, \
        after the harness deleted or edited 30 children.";
    assert_eq!(text("events.restored"), restored);
}

#[test]
fn another_world_is_a_failure_that_names_an_object_with_both_versions() {
    let difference = Difference {
        kind: DifferenceKind::Behind,
        namespace: "n".into(),
        name: "a".into(),
        believed_uid: Some("1".into()),
        believed_revision: Some("41".into()),
        listed_uid: Some("1".into()),
        listed_revision: Some("52".into()),
    };
    let differences = Differences { gone: 2, unknown: 0, behind: 1, replaced: 0 };
    let spoilt = EndState { agrees: Some(false), differences, examples: vec![difference], ..state() };
    let text = "events.converged fail: by its own page, the subject's state differs from a fresh list of 500 objects (listed at 2 min \
        40 s, its state read at 2 min 40 s): 2 objects that are gone, 1 object in another version (first: n/a: it knows version 41, but the object has version 52).";
    assert_eq!(fired(Some(spoilt)), [text]);
    let sum = EndState { agrees: Some(false), believed: Some(499), ..state() };
    assert!(fired(Some(sum))[0].contains("it counts 499 objects and has another checksum"));
}

#[test]
fn what_was_not_read_is_never_a_pass() {
    let unread = EndState { agrees: None, believed: None, unread: Some("GET http://a/ answers 404".into()), ..state() };
    let text = "events.converged inconclusive: the end state could not be compared: GET http://a/ answers 404.";
    assert_eq!(fired(Some(unread)), [text]);
    let nothing = fired(None);
    assert_eq!(nothing.len(), 2, "{nothing:?}");
    assert!(nothing.iter().all(|text| text.contains("inconclusive: the run did not reach the end of its drain")));
    let children = ChildrenState { unread: Some("HTTP 403".into()), ..ChildrenState::default() };
    let fired = fired(Some(EndState { children: Some(children), ..state() }));
    assert_eq!(fired, ["events.restored inconclusive: the children could not be compared: HTTP 403."]);
}

#[test]
fn what_should_be_gone_and_is_there_is_a_failure_though_both_agree() {
    let left = |objects| EndState { left: Some(Left { objects, examples: vec!["n/a".into()] }), ..state() };
    let text = "events.converged fail: all objects were deleted before the drain, but 1 object of them is still there (first: n/a).";
    assert_eq!(fired(Some(left(1))), [text]);
    assert_eq!(fired(Some(left(0))), [""; 0]);
}

#[test]
fn each_thing_wrong_with_children_is_told_of() {
    let problem = ChildProblem {
        kind: ChildProblemKind::Lacking,
        object: "n/a".into(),
        child: None,
        wanted: "2 children".into(),
        found: "1 child".into(),
    };
    let spoil = |spoil: fn(&mut ChildrenState)| {
        let mut state = state();
        let children = state.children.as_mut().unwrap();
        children.examples = vec![problem.clone()];
        spoil(children);
        fired(Some(state))
    };
    let text = "events.restored fail: of 500 objects of packages.longhaul.dev, 1 has too few children, after the harness deleted or \
        edited 30 children; first: n/a: 1 child instead of 2 children.";
    assert_eq!(spoil(|children| children.lacking = 1), [text]);
    for (lacking, unowned, said) in [
        (1, 1, "1 has too few children (it exists, but without an owner reference), after"),
        (3, 3, "3 have too few children (they exist, but without an owner reference), after"),
        (3, 2, "3 have too few children (those of 2 exist, but without an owner reference), after"),
    ] {
        let mut state = state();
        let children = state.children.as_mut().unwrap();
        (children.lacking, children.unowned) = (lacking, unowned);
        let fired = fired(Some(state));
        assert!(fired.len() == 1 && fired[0].contains(said), "{fired:?}");
    }
    for (way, said) in [
        ((|children| children.surplus = 2) as fn(&mut ChildrenState), "2 have too many children"),
        (|children| children.stale = 1, "1 child has an old version"),
        (|children| children.edited = 3, "3 children still have the harness's edit"),
        (|children| children.orphans = 1, "1 child has no parent"),
    ] {
        let fired = spoil(way);
        assert!(fired.len() == 1 && fired[0].contains(said), "{fired:?}");
    }
    assert_eq!(spoil(|children| children.wanted = 0).len(), 1, "nothing was compared");
}

/// If the harness deletes or edits very many children, only some of them have a row in the record, and the last row has
/// the number of the others.
#[test]
fn all_children_that_drifted_are_told_of() {
    let mut example = Example::clean();
    example.manifest.budgets.events.as_mut().unwrap().restored = Some(true);
    let row = |event, hits| FaultRow {
        t_ms: 70_000,
        id: DRIFT.into(),
        name: DRIFT.into(),
        event,
        hits,
        ok: None,
        detail: None,
    };
    let rows = [(FaultEvent::Hit, 63), (FaultEvent::Hit, 130), (FaultEvent::Hit, 248), (FaultEvent::Ended, 248)];
    example.faults.extend(rows.map(|(event, hits)| row(event, hits)));
    example.end_state = Some(state());
    let judgement = example.judged();
    let restored = judgement.findings.iter().find(|finding| finding.budget == "events.restored").unwrap();
    assert!(restored.text.contains("edited 248 children"), "{}", restored.text);
}

/// A restored child proves nothing if the churn wrote its parent again: a subject that looks only at parents then
/// restores the child as a side effect.
#[test]
fn drift_that_the_churn_may_have_repaired_proves_nothing() {
    let fired = |drift| {
        let judgement = judgement_with(Some(state()), Some(drift));
        let restored = judgement.findings.iter().find(|finding| finding.budget == "events.restored").unwrap();
        (restored.verdict, restored.text.clone())
    };
    let overtaken = Drifted { children: 30, overtaken: 28, gone: 2, ..Drifted::default() };
    let (verdict, text) = fired(overtaken);
    assert_eq!(verdict, Verdict::Inconclusive, "{text}");
    assert!(
        text.contains(
            "all 30 children that the harness deleted or edited belong to objects that were written or deleted"
        ),
        "{text}"
    );
    for proof in [Drifted { restored: 1, ..overtaken }, Drifted { unwritten: 1, ..overtaken }] {
        let (verdict, text) = fired(proof);
        assert_eq!(verdict, Verdict::Pass, "{text}");
        assert!(text.ends_with("edited 30 children; 1 of them without any write to their parent."), "{text}");
    }
    assert_eq!(fired(Drifted::default()).0, Verdict::Pass, "nothing drifted that had to be restored");
}

#[test]
fn of_several_kinds_of_children_each_counts() {
    let kind = |resource: &str, lacking| ChildrenState {
        resource: resource.into(),
        parents: 500,
        wanted: 500,
        found: 500 - lacking,
        lacking,
        ..ChildrenState::default()
    };
    let with = |more: ChildrenState| fired(Some(EndState { more_children: vec![more], ..state() }));
    assert_eq!(with(kind("services", 0)), [""; 0]);
    let text = "events.restored fail: of 500 objects of packages.longhaul.dev, 3 have too few children (services), after the harness deleted or edited \
        30 children; first: .";
    assert_eq!(with(kind("services", 3)), [text]);
    let unread = ChildrenState { unread: Some("HTTP 403".into()), ..kind("services", 0) };
    assert_eq!(with(unread), ["events.restored inconclusive: the children could not be compared: HTTP 403."]);
}
