//! Tests of `children.excess` with parents that had too many children.

use crate::example::{self, judgement_of_objects};
use crate::judge::{Judgement, Verdict, Word};
use crate::record::{Objects, Orphaned, Siblings, TooMany};

fn kind(excess: u64) -> Siblings {
    let example = TooMany {
        object: "n/a".into(),
        wanted: 1,
        found: 2,
        from_ms: 12_000,
        to_ms: Some(12_400),
        children: vec!["a-4fzt".into(), "a-9x2b".into()],
    };
    Siblings {
        resource: "configmaps".into(),
        of: "caches.example.com".into(),
        parents: 50,
        made: 60,
        excess,
        examples: if excess > 0 { vec![example] } else { Vec::new() },
        ..Siblings::default()
    }
}

fn judgement_of(siblings: Vec<Siblings>, budgets: Option<&str>) -> Judgement {
    judgement_of_objects(Some(Objects { siblings, ..Objects::default() }), budgets)
}

fn finding(judgement: &Judgement) -> (Verdict, &str) {
    finding_of(judgement, "children.excess")
}

fn finding_of<'a>(judgement: &'a Judgement, budget: &str) -> (Verdict, &'a str) {
    example::finding(judgement, budget).unwrap_or((Verdict::Pass, ""))
}

#[test]
fn too_many_for_a_moment_are_too_many() {
    let judgement = judgement_of(vec![kind(3)], None);
    let text = "3 of 50 caches.example.com had too many configmaps; first: n/a had 2 configmaps instead of 1 at 12 s, for 400 ms (a-4fzt, a-9x2b).";
    assert_eq!(finding(&judgement), (Verdict::Fail, text));
    assert_eq!((judgement.verdict, &judgement.words[..]), (Verdict::Fail, &[Word::Excess][..]));
    assert_eq!(finding(&judgement_of(vec![kind(3)], Some(r#"{"children": {"excess": 3}}"#))).0, Verdict::Pass);
    assert_eq!(finding(&judgement_of(vec![kind(0), kind(1)], None)).0, Verdict::Fail, "each kind counts");
}

#[test]
fn who_makes_what_it_should_passes() {
    let judgement = judgement_of(vec![kind(0)], None);
    let text = "no object had too many children at any time (60 configmaps of 50 caches.example.com).";
    assert_eq!((judgement.verdict, finding(&judgement)), (Verdict::Pass, (Verdict::Pass, text)));
    assert_eq!(finding(&judgement_of(Vec::new(), None)), (Verdict::Pass, ""), "a scenario without children");
}

#[test]
fn what_was_not_seen_decides_nothing() {
    let why = "the watch of configmaps had a hole from 12 s to 13 s";
    let unread = |excess| Siblings { unread: Some(why.into()), ..kind(excess) };
    for budgets in [None, Some(r#"{"children": {"excess": 0}}"#)] {
        let judgement = judgement_of(vec![unread(0)], budgets);
        let (verdict, text) = finding(&judgement);
        assert!(verdict == Verdict::Inconclusive && text.contains(why), "{text}");
        assert_eq!(finding_of(&judgement, "children.orphaned").0, Verdict::Inconclusive);
        assert_eq!(judgement.verdict, Verdict::Inconclusive);
        assert!(judgement.reason.contains(why), "{}", judgement.reason);
    }
    assert_eq!(finding(&judgement_of(vec![unread(1)], None)).0, Verdict::Fail, "what was seen is said");
}

fn orphaned(orphaned: u64) -> Siblings {
    let orphan = Orphaned {
        child: "n/a-config".into(),
        parent: "n/a".into(),
        known: "known by its name".into(),
        for_ms: 42_000,
    };
    Siblings { orphaned, orphans: if orphaned > 0 { vec![orphan] } else { Vec::new() }, ..kind(0) }
}

#[test]
fn a_child_without_an_owner_that_outlives_its_parent_is_named() {
    let judgement = judgement_of(vec![orphaned(3)], None);
    let text = "3 configmaps without an owner reference outlive their parents, so no garbage collector deletes them, and the subject did \
        not either: configmaps n/a-config (known by its name) still exists 42 s after caches.example.com n/a was deleted.";
    assert_eq!(finding_of(&judgement, "children.orphaned"), (Verdict::Fail, text));
    assert_eq!((judgement.verdict, &judgement.words[..]), (Verdict::Fail, &[Word::Orphaned][..]));
    assert_eq!(finding(&judgement).0, Verdict::Pass, "they are not too many");
    let allowed = judgement_of(vec![orphaned(3)], Some(r#"{"children": {"orphaned": 3}}"#));
    assert_eq!(finding_of(&allowed, "children.orphaned").0, Verdict::Pass);
    let clean = judgement_of(vec![orphaned(0)], None);
    let text = "no child without an owner reference outlived its parent.";
    assert_eq!(finding_of(&clean, "children.orphaned"), (Verdict::Pass, text));
}
