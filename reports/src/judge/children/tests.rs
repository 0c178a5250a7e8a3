//! Parents of a record that had too many children.

use crate::example::Example;
use crate::judge::{Judgement, Verdict, Word};
use crate::record::{Objects, Siblings, TooMany};

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

fn judged(siblings: Vec<Siblings>, budgets: Option<&str>) -> Judgement {
    let mut example = Example::clean();
    if let Some(budgets) = budgets {
        example.manifest.budgets = serde_json::from_str(budgets).unwrap();
    }
    example.objects = Some(Objects { siblings, ..Objects::default() });
    example.judged()
}

fn said(judgement: &Judgement) -> (Verdict, &str) {
    let found = judgement.findings.iter().find(|finding| finding.budget == "children.excess");
    found.map_or((Verdict::Pass, ""), |finding| (finding.verdict, finding.text.as_str()))
}

#[test]
fn too_many_for_a_moment_are_too_many() {
    let judgement = judged(vec![kind(3)], None);
    let text = "3 of 50 caches.example.com had too many configmaps; first: n/a had 2 configmaps instead of 1 at 12 s, for 400 ms (a-4fzt, a-9x2b).";
    assert_eq!(said(&judgement), (Verdict::Fail, text));
    assert_eq!((judgement.verdict, &judgement.words[..]), (Verdict::Fail, &[Word::Excess][..]));
    assert_eq!(said(&judged(vec![kind(3)], Some(r#"{"children": {"excess": 3}}"#))).0, Verdict::Pass);
    assert_eq!(said(&judged(vec![kind(0), kind(1)], None)).0, Verdict::Fail, "each kind counts");
}

#[test]
fn who_makes_what_it_should_passes() {
    let judgement = judged(vec![kind(0)], None);
    let text = "no object had more children than it should at any time (60 configmaps of 50 caches.example.com).";
    assert_eq!((judgement.verdict, said(&judgement)), (Verdict::Pass, (Verdict::Pass, text)));
    assert_eq!(said(&judged(Vec::new(), None)), (Verdict::Pass, ""), "a scenario without children");
}

#[test]
fn what_was_not_seen_decides_nothing() {
    let unread = |excess| Siblings { unread: Some("the watch was lost".into()), ..kind(excess) };
    assert_eq!(said(&judged(vec![unread(0)], Some(r#"{"children": {"excess": 0}}"#))).0, Verdict::Inconclusive);
    let judgement = judged(vec![unread(0)], None);
    assert_eq!((judgement.verdict, said(&judgement)), (Verdict::Pass, (Verdict::Pass, "")));
    assert!(judgement.notes.iter().any(|note| note.contains("the watch was lost")), "{:?}", judgement.notes);
    assert_eq!(said(&judged(vec![unread(1)], None)).0, Verdict::Fail, "what was seen is said");
}
