//! The children of a subject: what it creates for an object of its own kind, and what may be changed in them.
//!
//! Owns which children somebody else may delete or edit in a trial, and which children must vanish with their parent. A
//! child is inferred from plays without disturbances. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use reports::hunt::{Sign, What};
use serde_json::{Map, Value, json};

use super::audit::{Audit, is_ignored};
use super::normal::{self, Leaves};
use super::operations::Operations;
use super::points::Signature;
use super::reference::Reference;

/// Objects that run once: a program may leave a deleted one alone.
const RUN_ONCE: [&str; 1] = ["jobs.batch"];
/// Data that programs keep on purpose when its owner is deleted.
const KEPT: [&str; 2] = ["secrets", "persistentvolumeclaims"];
/// The fields whose texts have no meaning for the API server, and of which a Secret wants base64.
const TEXTS: [&str; 3] = ["data.", "metadata.annotations.", "spec.template.metadata.annotations."];
/// Fields that the API server fills in. An update without such a field looks like a change of it, although the program has
/// no wish about its value.
const FILLED_IN: [&str; 6] = [
    "allocateLoadBalancerNodePorts",
    "backoffLimit",
    "partition",
    "progressDeadlineSeconds",
    "revisionHistoryLimit",
    "terminationGracePeriodSeconds",
];
const EDITED: &str = "edited";
const EDITED_BASE64: &str = "ZWRpdGVk";
/// Time from the last operation to a change of children, in milliseconds: later operations would hide a missing reaction.
const AFTER_OPERATIONS_MS: u64 = 500;
/// Limit of the judges of children in a trial: the hunt compares numbers with the reference instead.
const JUDGED_FROM: u32 = 100_000;

/// A kind of objects that the subject creates, watches and owns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Child {
    /// The resource with its version, as scenarios write it: `deployments.apps/v1`.
    pub(crate) spelled: String,
    /// The point that creates such a child.
    pub(crate) created_by: Signature,
    /// The highest number of such children of one object.
    pub(crate) each: u32,
    /// A merge patch of fields that the subject itself changes, as JSON text; `None` if no field is known to be safe.
    pub(crate) edit: Option<String>,
    /// The time from the first creation to the change, in milliseconds.
    pub(crate) later_ms: u64,
}

impl Child {
    /// The fault that deletes or edits all such children after the last operation.
    pub(crate) fn fault(&self, edit: Option<&str>) -> Value {
        let mut when = self.created_by.trigger(1, "after");
        when["plus"] = format!("{}ms", self.later_ms).into();
        let mut fault = json!({"name": "children-drift", "children": self.spelled, "share": 1.0, "when": when});
        if let Some(edit) = edit.and_then(|edit| serde_json::from_str::<Value>(edit).ok()) {
            fault["edit"] = edit;
        }
        fault
    }

    /// The plural name, for people.
    pub(crate) fn plural(&self) -> &str {
        self.spelled.split(['.', '/']).next().unwrap_or_default()
    }

    /// Names the children in a scenario, whose faults could not reach them otherwise.
    pub(crate) fn name_in(&self, scenario: &mut Map<String, Value>) {
        let Some(Value::Object(subject)) = scenario.get_mut("subject") else { return };
        let kinds = subject.entry("children").or_insert_with(|| json!([]));
        if kinds.is_object() {
            *kinds = json!([kinds.take()]);
        }
        let Value::Array(kinds) = kinds else { return };
        if kinds.iter().any(|kind| kind["resource"] == *self.spelled) {
            return;
        }
        kinds.push(json!({"resource": self.spelled, "by": "owner", "perParent": self.each}));
        if let Some(Value::Object(budgets)) = scenario.get_mut("budgets") {
            budgets.insert("children".to_owned(), json!({"excess": JUDGED_FROM, "orphaned": JUDGED_FROM}));
        }
    }
}

/// The children that a trial may change, inferred from plays without disturbances.
pub(crate) fn children(reference: &Reference, plays: &[&Audit], operations: &Operations) -> Vec<Child> {
    let Some(play) = plays.first() else { return Vec::new() };
    let parents = operations.plural();
    let uids: BTreeSet<&str> =
        of_resource(play, parents).filter_map(|parent| parent["metadata"]["uid"].as_str()).collect();
    let mut all = Vec::new();
    for point in &reference.points {
        let resource = &point.signature.resource;
        let fits = point.signature.verb == "create" && point.signature.subresource.is_empty();
        let is_watched = reference.watched.contains(resource);
        if !fits || !is_watched || resource == parents || RUN_ONCE.contains(&resource.as_str()) {
            continue;
        }
        let owned: Vec<(&str, &Value)> =
            of_resource(play, resource).filter_map(|object| Some((owner(object, &uids)?, object))).collect();
        let Some((uid, first)) = owned.first() else { continue };
        let parent = of_resource(play, parents).find(|parent| parent["metadata"]["uid"] == **uid);
        let Some(version) = first["apiVersion"].as_str().and_then(|text| text.rsplit('/').next()) else { continue };
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for (uid, _) in &owned {
            *counts.entry(uid).or_default() += 1;
        }
        let created_ms = first_creation(play, resource);
        all.push(Child {
            spelled: format!("{resource}/{version}"),
            created_by: point.signature.clone(),
            each: counts.into_values().max().unwrap_or(1),
            edit: edit(reference, resource, first, parent.unwrap_or(&Value::Null)),
            later_ms: (operations.last_ms() + AFTER_OPERATIONS_MS).saturating_sub(created_ms),
        });
    }
    all
}

/// The first child without an owner reference that is still there although its parent was deleted, as a sign.
pub(crate) fn leftover(audit: &Audit, operations: &Operations) -> Option<Sign> {
    let (resource, object, parent) = orphans(audit, operations).into_iter().next()?;
    let plural = resource.split('.').next().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Some(Sign {
        what: What::Judge,
        subject: "children.orphaned".to_owned(),
        object: Some(name.to_owned()),
        field: None,
        happened: format!("{plural} {name} is still there after {parent} was deleted, and has no owner reference."),
        expected: "no such object".to_owned(),
        most: None,
        value: None,
    })
}

/// Expects no such children of plays without disturbances: a trial without them is right.
pub(crate) fn expect_no_leftovers(reference: &mut Reference, plays: &[Audit], operations: &Operations) {
    for (resource, object, _) in plays.iter().flat_map(|play| orphans(play, operations)) {
        let key = normal::key(resource, object);
        reference.objects.remove(&key);
        reference.loose.insert(key);
    }
}

/// Children without an owner reference whose parents were deleted, each with its resource and its parent. A child of the
/// deleted object has the name of a child of another object, but for the name of the parent.
fn orphans<'a>(audit: &'a Audit, operations: &Operations) -> Vec<(&'a str, &'a Value, String)> {
    let parents = operations.plural();
    let created: BTreeSet<&str> = audit
        .writes
        .iter()
        .filter(|write| write.verb == "create" && write.status < 300)
        .map(|write| write.resource.as_str())
        .filter(|resource| *resource != parents && !KEPT.contains(resource) && !is_ignored(resource))
        .collect();
    let here = |resource: &str, name: &str| of_resource(audit, resource).any(|it| it["metadata"]["name"] == *name);
    let (gone, stays) = operations.gone_and_staying();
    let gone: Vec<String> = gone.into_iter().filter(|name| !here(parents, name)).collect();
    let mut all = Vec::new();
    for resource in created {
        for object in of_resource(audit, resource) {
            let metadata = &object["metadata"];
            let name = metadata["name"].as_str().unwrap_or_default();
            let is_owned = metadata["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty());
            let parent = gone.iter().find(|parent| has_part(name, parent));
            let Some(parent) = parent.filter(|_| !is_owned && metadata["deletionTimestamp"].is_null()) else {
                continue;
            };
            // A name that no other object's child has may be an accident.
            if stays.iter().any(|other| here(resource, &name.replacen(parent.as_str(), other, 1))) {
                all.push((resource, object, parent.clone()));
            }
        }
    }
    all
}

fn of_resource<'a>(audit: &'a Audit, resource: &str) -> impl Iterator<Item = &'a Value> {
    audit.objects.iter().filter(move |one| one.resource == resource).map(|one| &one.object)
}

/// The owner of an object, if it is one of these.
fn owner<'a>(object: &'a Value, uids: &BTreeSet<&str>) -> Option<&'a str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().filter_map(|owner| owner["uid"].as_str()).find(|uid| uids.contains(uid))
}

fn first_creation(play: &Audit, resource: &str) -> u64 {
    let mut creations = play.writes.iter().filter(|write| write.verb == "create" && write.resource == resource);
    creations.next().map_or(0, |write| write.t_ms)
}

/// Whether a name is another name, perhaps with more words before or after it.
fn has_part(name: &str, part: &str) -> bool {
    let Some((before, after)) = name.split_once(part) else { return false };
    (before.is_empty() || before.ends_with(['-', '.'])) && (after.is_empty() || after.starts_with(['-', '.']))
}

/// A merge patch that changes one field which the subject changes itself and which every play has with the same value.
/// An annotation that its parent has too is none: programs pass such annotations on when they write for another reason.
fn edit(reference: &Reference, resource: &str, child: &Value, parent: &Value) -> Option<String> {
    let written: BTreeSet<&String> = reference
        .points
        .iter()
        .map(|point| &point.signature)
        .filter(|point| point.resource == resource && point.subresource.is_empty())
        .filter(|point| matches!(point.verb.as_str(), "update" | "patch"))
        .flat_map(|point| &point.fields)
        .collect();
    let known = expected(reference, resource, child)?;
    let is_written = |path: &str| written.iter().any(|field| path == *field || path.starts_with(&format!("{field}.")));
    let mut numbers_first: Vec<(bool, String, Value)> = Vec::new();
    each_leaf(child, &mut |path, keys, value| {
        let is_filled_in = keys.last().is_some_and(|key| FILLED_IN.contains(key));
        let is_passed_on = keys.split_last().is_some_and(|(key, above)| {
            above.last() == Some(&"annotations") && parent["metadata"]["annotations"].get(key) == Some(value)
        });
        if !is_written(path) || is_filled_in || is_passed_on || known.get(path) != Some(value) {
            return;
        }
        let changed = match value {
            Value::Number(number) => number.as_i64().and_then(|number| number.checked_add(1)).map(Value::from),
            Value::Bool(is_on) => Some(Value::from(!is_on)),
            Value::String(_) if resource == "secrets" => path.starts_with(TEXTS[0]).then(|| EDITED_BASE64.into()),
            Value::String(_) => TEXTS.iter().any(|text| path.starts_with(text)).then(|| EDITED.into()),
            _ => None,
        };
        if let Some(changed) = changed {
            let patch = keys.iter().rev().fold(changed, |below, key| json!({ (*key): below }));
            numbers_first.push((value.is_string(), path.to_owned(), patch));
        }
    });
    numbers_first.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    numbers_first.into_iter().next().map(|(.., patch)| patch.to_string())
}

/// The values of a child that every play has.
fn expected<'a>(reference: &'a Reference, resource: &str, child: &Value) -> Option<&'a Leaves> {
    let text = |key: &str| child["metadata"][key].as_str().unwrap_or_default();
    reference.objects.get(&format!("{resource} {}/{}", text("namespace"), text("name")))
}

/// Calls `found` for each value below maps, with its path and keys. Values in lists are left out, because a merge patch
/// replaces lists.
fn each_leaf<'a>(value: &'a Value, found: &mut dyn FnMut(&str, &[&'a str], &'a Value)) {
    fn walk<'a>(
        value: &'a Value,
        path: &str,
        keys: &mut Vec<&'a str>,
        found: &mut dyn FnMut(&str, &[&'a str], &'a Value),
    ) {
        let Value::Object(map) = value else { return found(path, keys, value) };
        for (key, below) in map {
            keys.push(key);
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            walk(below, &path, keys, found);
            keys.pop();
        }
    }
    walk(value, "", &mut Vec::new(), found);
}

#[cfg(test)]
mod tests;
