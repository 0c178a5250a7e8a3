//! Tests of subjects that make objects of other clients again, or delete them.

use crate::example::{finding, judgement_of_objects};
use crate::judge::{Judgement, Verdict, Word};
use crate::record::{Carried, Foreign, ForeignRequest, Objects, Read};

const RESURRECTED: &str = "objects.resurrected";
const DELETED: &str = "objects.deletedByOthers";

fn deed(method: &str, gone_ms: Option<u64>, read: Vec<Read>) -> ForeignRequest {
    let name = if gone_ms.is_some() { "" } else { "/a" };
    ForeignRequest {
        resource: "caches.example.com".into(),
        object: "n/a".into(),
        t_ms: 12_350,
        method: method.into(),
        path: format!("/apis/example.com/v1/namespaces/n/caches{name}"),
        user_agent: "manager/v0".into(),
        gone_ms,
        read,
    }
}

fn again(made_again: u64) -> Foreign {
    let read = vec![
        Read::Listed { t_ms: 100, revision: 700, there: true },
        Read::Sent { t_ms: 12_310, revision: 812, what: Carried::Deletion },
        Read::Got { t_ms: 12_340, status: 404, revision: None },
    ];
    let again = vec![deed("POST", Some(12_300), read)];
    Foreign { gone: 134, made_again, again, ..Foreign::default() }
}

fn judgement_of(foreign: Option<Foreign>, budgets: Option<&str>) -> Judgement {
    judgement_of_objects(Some(Objects { foreign, ..Objects::default() }), budgets)
}

#[test]
fn who_makes_again_what_was_deleted_is_named_with_request_and_reading() {
    let judgement = judgement_of(Some(again(8)), None);
    let text = "the subject created 8 of 134 objects again that other clients had deleted: caches.example.com n/a was gone at 12.3 s and came back 50 ms later by POST /apis/example.com/v1/namespaces/n/caches (manager/v0). The subject's reads of it before: a watch brought its deletion 40 ms before, \
        version 812; a GET 10 ms before was answered 404.";
    assert_eq!(finding(&judgement, RESURRECTED), Some((Verdict::Fail, text)));
    assert_eq!((judgement.verdict, &judgement.words[..]), (Verdict::Fail, &[Word::MadeAgain][..]));
    assert_eq!(finding(&judgement, DELETED).map(|said| said.0), Some(Verdict::Pass));
    let allowed = judgement_of(Some(again(8)), Some(r#"{"objects": {"resurrected": 8}}"#));
    assert_eq!(finding(&allowed, RESURRECTED).map(|said| said.0), Some(Verdict::Pass));
}

#[test]
fn who_deletes_what_is_not_its_own_is_named_and_told_how_that_is_allowed() {
    let read = vec![Read::Got { t_ms: 12_000, status: 200, revision: Some(700) }];
    let foreign = Foreign { gone: 3, deleted: 2, deletions: vec![deed("DELETE", None, read)], ..Foreign::default() };
    let judgement = judgement_of(Some(foreign.clone()), None);
    let text = "the subject deleted 2 objects of other clients, before any of them asked for it: caches.example.com n/a at 12.3 s by DELETE /apis/example.com/v1/namespaces/n/caches/a (manager/v0). The subject's reads of it before: a GET 350 ms before was answered 200, \
        version 700. If that is its job, allow it: `budgets: {objects: {deletedByOthers: 2}}`.";
    assert_eq!(finding(&judgement, DELETED), Some((Verdict::Fail, text)));
    assert_eq!(&judgement.words[..], &[Word::DeletesOthers]);
    let allowed = judgement_of(Some(foreign), Some(r#"{"objects": {"deletedByOthers": 2}}"#));
    assert_eq!(allowed.verdict, Verdict::Pass);
}

#[test]
fn who_leaves_others_alone_passes_by_default() {
    let judgement = judgement_of(Some(Foreign { gone: 134, ..Foreign::default() }), None);
    let text = "the subject created none of the 134 objects again that other clients had deleted.";
    assert_eq!(judgement.verdict, Verdict::Pass);
    assert_eq!(finding(&judgement, RESURRECTED), Some((Verdict::Pass, text)));
    assert!(judgement.findings.iter().any(|finding| finding.budget == DELETED && finding.limit == "0, by default"));
    let judgement = judgement_of(None, None);
    assert_eq!((judgement.verdict, finding(&judgement, RESURRECTED)), (Verdict::Pass, None), "an older record");
}

#[test]
fn what_was_not_seen_decides_nothing_and_what_was_seen_is_said() {
    let unread = |foreign| Foreign { unread: Some("the harness fell behind".into()), ..foreign };
    let judgement = judgement_of(Some(unread(again(0))), None);
    let (verdict, text) = finding(&judgement, RESURRECTED).unwrap();
    assert!(verdict == Verdict::Inconclusive && text.contains("the harness fell behind"), "{text}");
    assert_eq!(finding(&judgement_of(Some(unread(again(1))), None), RESURRECTED).unwrap().0, Verdict::Fail);
    let judgement = judgement_of(None, Some(r#"{"objects": {"resurrected": 0}}"#));
    assert_eq!(finding(&judgement, RESURRECTED).unwrap().0, Verdict::Inconclusive, "nobody tells who asked");
}
