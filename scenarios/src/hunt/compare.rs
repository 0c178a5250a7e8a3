//! The differences of a trial from the reference.
//!
//! Owns what is a sign of a bug, and which sign of a trial names its cause. Does no I/O.

use std::collections::BTreeMap;

use reports::hunt::{Sign, What};
use serde_json::Value;

use super::audit::{Audit, Changes, is_ignored};
use super::normal::{self, Leaves};
use super::reference::{Reference, by_resource};

/// Maximum number of signs of one trial.
const SIGNS_MAX: usize = 24;
/// Longest shown value, in characters.
const VALUE_MAX: usize = 80;

/// Annotations in which the controller of Deployments, and controllers like it, count the templates of an object. A subject
/// that sees two changes at once writes one template less.
const REVISIONS: [&str; 2] = ["/revision", "/revision-history"];

/// The judges whose findings count in a trial. Lags and missed versions are no bugs while events are held.
const JUDGES: [&str; 8] = [
    "writes.",
    "finalizers.",
    "objects.",
    "children.",
    "crashes.",
    "subject.exited",
    "admission.wrongVerdicts",
    "requests.hotLoop",
];

/// Whether a broken budget is a sign of a bug.
pub(crate) fn is_judged(budget: &str) -> bool {
    JUDGES.iter().any(|judge| budget.starts_with(judge))
}

/// The signs in the end state and the numbers of a trial, the most telling first.
pub(crate) fn signs(reference: &Reference, audit: &Audit) -> Vec<Sign> {
    let play = normal::objects(&audit.objects);
    let mut signs = numbers(reference, audit);
    signs.extend(additional(reference, &play));
    if !is_cut(reference, audit) {
        signs.extend(missing(reference, &play));
        signs.extend(fields(reference, &play));
    }
    signs.sort_by_key(|sign| sign.what);
    signs.truncate(SIGNS_MAX);
    signs
}

/// Whether the hunt could not create all its objects, because a finalizer held a deleted one until the load ended: then
/// objects are missing that nobody asked for. Finalizers that stay have a judge.
fn is_cut(reference: &Reference, audit: &Audit) -> bool {
    let created = |changes: Option<&Changes>| changes.map_or(0, |changes| changes.created);
    created(audit.changes.get(&reference.load)) < created(reference.highest.get(&reference.load))
}

/// More creations, deletions or objects at one moment than in any reference.
fn numbers(reference: &Reference, audit: &Audit) -> Vec<Sign> {
    let mut signs = Vec::new();
    let counts = |resource: &str| !is_ignored(resource) && !is_request(reference, resource);
    for (resource, changes) in audit.changes.iter().filter(|(resource, _)| counts(resource)) {
        let most = reference.highest.get(resource).copied().unwrap_or_default();
        let mut sign = |what: What, is: i64, was: i64, words: &str| {
            if is > was {
                signs.push(Sign {
                    what,
                    subject: resource.clone(),
                    object: None,
                    field: None,
                    happened: format!("{is} {words}"),
                    expected: format!("at most {was}"),
                    most: u64::try_from(was).ok(),
                    value: None,
                });
            }
        };
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        sign(What::Made, number(changes.created), number(most.created), "creations");
        sign(What::Deleted, number(changes.deleted), number(most.deleted), "deletions");
        // Deletions may come later than in any reference: then the deleted objects are there beside the new ones.
        let late = most.most.saturating_add(number(most.deleted));
        sign(What::Most, changes.most, late, "more objects than before, at one moment");
    }
    signs.sort_by_key(|sign| sign.what);
    signs
}

/// Whether the objects of a resource only ask for work: each is deleted when its work is done, while other objects stay.
/// The same work may be asked for again, for example after a restart.
fn is_request(reference: &Reference, resource: &str) -> bool {
    let at_end = |resource: &str| reference.ends.get(resource).is_some_and(|count| *count > 0);
    let is_done = |most: &Changes| most.created > 0 && most.deleted >= most.created;
    let some_stay = reference.highest.iter().any(|(other, most)| most.created > 0 && at_end(other));
    some_stay && !at_end(resource) && reference.highest.get(resource).is_some_and(is_done)
}

fn missing(reference: &Reference, play: &BTreeMap<String, Leaves>) -> Vec<Sign> {
    let gone = reference.objects.keys().filter(|key| !play.contains_key(*key));
    gone.map(|key| of_object(What::Missing, key, "is missing", "there")).collect()
}

/// Objects that no reference has, if there are also more objects of their resource.
fn additional(reference: &Reference, play: &BTreeMap<String, Leaves>) -> Vec<Sign> {
    let counts = by_resource(play);
    let is_more = |key: &str| {
        let resource = normal::resource_of(key);
        counts.get(resource).copied().unwrap_or(0) > reference.ends.get(resource).copied().unwrap_or(0)
    };
    let unknown = |key: &&String| !reference.objects.contains_key(*key) && !reference.loose.contains(*key);
    let extra = play.keys().filter(unknown).filter(|key| is_more(key));
    extra.map(|key| of_object(What::Additional, key, "is there", "no such object")).collect()
}

pub(super) fn of_object(what: What, key: &str, happened: &str, expected: &str) -> Sign {
    let (resource, object) = key.split_once(' ').unwrap_or((key, ""));
    Sign {
        what,
        subject: resource.to_owned(),
        object: Some(object.to_owned()),
        field: None,
        happened: happened.to_owned(),
        expected: expected.to_owned(),
        most: None,
        value: None,
    }
}

/// Other values in fields that are equal in all references.
fn fields(reference: &Reference, play: &BTreeMap<String, Leaves>) -> Vec<Sign> {
    let mut signs = Vec::new();
    for (key, expected) in &reference.objects {
        let Some(leaves) = play.get(key) else { continue };
        let is_masked = |path: &str| {
            let values = [expected.get(path), leaves.get(path)];
            is_revision(path, values) || reference.masked.contains(&(key.clone(), path.to_owned()))
        };
        let known = expected.iter().filter(|(path, value)| leaves.get(*path) != Some(value) && !is_masked(path));
        let lost = known.map(|(path, value)| (path, Some(value), leaves.get(path)));
        let new = leaves.iter().filter(|(path, _)| !expected.contains_key(*path) && !is_masked(path));
        let new = new.map(|(path, value)| (path, None, Some(value)));
        let resource = normal::resource_of(key);
        for (path, was, is) in lost.chain(new) {
            let is_copy = || reference.copies.contains(&(resource.to_owned(), path.clone()));
            if was.is_some() && is.is_some() && is_copy() {
                continue;
            }
            let mut sign = of_object(What::Field, key, &shown(is), &shown(was));
            sign.field = Some(path.clone());
            sign.value = Some(was.cloned().unwrap_or(Value::Null));
            signs.push(sign);
        }
    }
    signs
}

/// Whether the values of a field count templates: numbers, with commas between them.
fn is_revision(path: &str, values: [Option<&Value>; 2]) -> bool {
    let is_count = |value: &Value| {
        let is_part = |one: char| one.is_ascii_digit() || one == ',';
        value.as_str().is_some_and(|text| text.chars().all(is_part))
    };
    REVISIONS.iter().any(|end| path.ends_with(end)) && values.into_iter().flatten().all(is_count)
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "absent".to_owned() };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.is_empty() {
        return "empty".to_owned();
    }
    if text.chars().count() <= VALUE_MAX {
        return text;
    }
    text.chars().take(VALUE_MAX).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::audit::Object;
    use super::super::reference::tests::play;
    use super::*;

    fn reference() -> Reference {
        let plays = [play(&json!({"ready": 1, "t": "a"}), 2), play(&json!({"ready": 1, "t": "b"}), 3)];
        Reference::of(&plays)
    }

    fn told(audit: &Audit) -> Vec<String> {
        let one = |sign: Sign| format!("{:?} {} {}", sign.what, sign.subject, sign.field.unwrap_or_default());
        signs(&reference(), audit).into_iter().map(one).collect()
    }

    /// A play like the references has no sign, also if a masked value differs.
    #[test]
    fn a_right_play_has_no_sign() {
        assert_eq!(told(&play(&json!({"ready": 1, "t": "zzz"}), 3)), Vec::<String>::new());
        assert_eq!(told(&play(&json!({"ready": 1, "t": null}), 1)), Vec::<String>::new());
    }

    #[test]
    fn each_difference_is_a_sign() {
        assert_eq!(told(&play(&json!({"ready": 2}), 2)), ["Field caches.x status.ready"]);
        assert_eq!(told(&play(&json!({}), 2)), ["Field caches.x status.ready"]);
        assert_eq!(told(&play(&json!({"ready": 1, "new": 1}), 2)), ["Field caches.x status.new"]);
        assert_eq!(told(&play(&json!({"ready": 1}), 4)), ["Made pods "]);
        let mut more = play(&json!({"ready": 1}), 2);
        let other = json!({"metadata": {"name": "b", "namespace": "n"}});
        more.objects.push(Object { resource: "caches.x".to_owned(), object: other.clone() });
        assert_eq!(told(&more), ["Additional caches.x "]);
        more.objects.remove(0);
        assert_eq!(told(&more), ["Missing caches.x "], "another object instead is one difference");
        let events = Audit {
            objects: vec![Object { resource: "events".to_owned(), object: other }],
            ..play(&json!({"ready": 1}), 2)
        };
        assert_eq!(told(&events), ["Missing caches.x "], "events are no objects of the comparison");
    }

    /// A subject that sees two changes at once counts one template less, and another text is a difference.
    #[test]
    fn the_history_of_templates_is_no_sign() {
        let play = |history: Option<&str>| {
            let mut play = play(&json!({"ready": 1}), 2);
            let annotations = history.map_or_else(|| json!({}), |history| json!({"x/revision-history": history}));
            play.objects[0].object["metadata"]["annotations"] = annotations;
            play
        };
        let differ = |one: Option<&str>, other: Option<&str>| {
            let reference = Reference::of(&[play(one), play(one)]);
            signs(&reference, &play(other)).len()
        };
        assert_eq!((differ(Some("1,1,2"), Some("1")), differ(Some("1"), None)), (0, 0));
        assert_eq!((differ(Some("main"), Some("next")), differ(Some("1"), Some("main"))), (1, 1));
    }

    /// An object that the hunt could not create is not missing.
    #[test]
    fn an_object_that_nobody_created_is_not_missing() {
        let reference = Reference { load: "pods".to_owned(), ..reference() };
        let count = |created: u64| {
            let audit = Audit { objects: Vec::new(), ..play(&json!({"ready": 1}), created) };
            signs(&reference, &audit).len()
        };
        assert_eq!((count(3), count(2)), (1, 0));
    }

    /// If deletions come later, more objects are there at one moment, and that is no bug by itself.
    #[test]
    fn late_deletions_are_no_sign() {
        let most = |most: i64| {
            let mut audit = play(&json!({"ready": 1}), 2);
            audit.changes.get_mut("pods").unwrap().most = most;
            told(&audit)
        };
        assert_eq!(most(3), Vec::<String>::new(), "one deletion came after the next creation");
        assert_eq!(most(4), ["Most pods "]);
    }

    /// An object that is deleted when its work is done may be made once more. If nothing stays, each object counts.
    #[test]
    fn requests_for_work_may_come_again() {
        let done = |times: u64, made: u64| {
            let mut audit = play(&json!({"ready": 1}), 2);
            audit.changes.insert("requests.x".to_owned(), Changes { created: times, deleted: times, most: 1 });
            audit.changes.insert("caches.x".to_owned(), Changes { created: made, deleted: 0, most: 1 });
            audit
        };
        let told = |made: u64| {
            let reference = Reference::of(&[done(2, made), done(2, made)]);
            signs(&reference, &done(3, made)).into_iter().map(|sign| sign.subject).collect::<Vec<_>>()
        };
        assert_eq!(told(1), Vec::<String>::new());
        assert_eq!(told(0), ["requests.x", "requests.x"], "no object that was made stays");
    }

    #[test]
    fn held_events_are_not_judged_as_missed() {
        assert!(is_judged("objects.resurrected") && is_judged("children.excess") && is_judged("subject.exited"));
        assert!(!is_judged("events.missed") && !is_judged("memory.ceiling") && !is_judged("validity.pace"));
    }
}
