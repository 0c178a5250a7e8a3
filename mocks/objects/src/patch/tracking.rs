//! The owners of fields after writes other than an apply: entries in `metadata.managedFields` with the operation
//! `Update`.
//!
//! Compares an object with its previous version, and makes the writing client the owner of changed fields (Kubernetes
//! documentation, "Server-Side Apply", field management; KEP-555). The code works directly on the `FieldsV1` notation
//! and visits both objects once, because every write pays this cost. This module must not decide conflicts.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::manager::Manager;
use super::owners::gone_version;
use super::schema::{Merge, Rules, key_of};
use crate::catalogue::Resource;
use crate::object;

/// Names of fields that only the server sets, which have no owner.
const SERVERS: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];
/// The manager name for fields that existed before tracking began.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// A set of fields in the notation of `FieldsV1`.
type Fields = Map<String, Value>;

/// Records that `by` changed `old` into `value`. An object without `managedFields` is not tracked: tracking begins when
/// an object is created, or with the first apply.
pub fn track(value: &mut Value, old: Option<&Value>, by: &Manager<'_>, resource: &Resource) {
    let given = match object::metadata(value).remove("managedFields") {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    };
    // The documented way to strip an object: a list with one empty entry.
    if matches!(given.as_slice(), [Value::Object(entry)] if entry.is_empty()) {
        return;
    }
    let readable = !given.is_empty() && old.is_some() && given.iter().all(|entry| entry["fieldsV1"].is_object());
    let live = || old.and_then(|old| old["metadata"]["managedFields"].as_array()).cloned().unwrap_or_default();
    let entries = if readable { given } else { live() };
    if entries.is_empty() && old.is_some() || gone_version(&entries, resource).is_some() {
        return;
    }
    let mut changes = Changes { rules: Rules::of(resource, by.api_version), set: Fields::new(), gone: Fields::new() };
    changes.root(old.unwrap_or(&Value::Null), value, by.subresource);
    let nothing = changes.set.is_empty() && changes.gone.is_empty();
    let entries = if nothing { entries } else { moved(entries, changes, by) };
    if !entries.is_empty() {
        object::metadata(value).insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// Makes the manager `before-first-apply` the owner of all fields of an untracked object, so that an apply can
/// conflict.
pub(super) fn before_first_apply(value: &mut Value, by: &Manager<'_>, resource: &Resource) {
    let mut changes = Changes { rules: Rules::of(resource, by.api_version), set: Fields::new(), gone: Fields::new() };
    changes.root(&Value::Null, value, "");
    let first = Manager { name: BEFORE_FIRST_APPLY, subresource: "", ..*by };
    let entries = moved(Vec::new(), changes, &first);
    object::metadata(value).insert("managedFields".to_owned(), Value::Array(entries));
}

/// Removes changed fields from all managers, and makes `by` the owner of the fields that were set.
fn moved(entries: Vec<Value>, changes: Changes<'_>, by: &Manager<'_>) -> Vec<Value> {
    let mut own = None;
    let mut out = Vec::with_capacity(entries.len() + 1);
    for mut entry in entries {
        let is_own = is_own(&entry, by);
        if let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) {
            subtract(fields, &changes.gone);
            if is_own && own.is_none() {
                own = Some(out.len());
            } else {
                subtract(fields, &changes.set);
                if fields.is_empty() {
                    continue;
                }
            }
        }
        out.push(entry);
    }
    match own {
        Some(index) => {
            if let Some(fields) = out[index].get_mut("fieldsV1").and_then(Value::as_object_mut) {
                unite(fields, changes.set);
                if fields.is_empty() {
                    out.remove(index);
                    return out;
                }
            }
            out[index]["time"] = Value::from(object::seconds(by.now));
        }
        None if !changes.set.is_empty() => {
            let mut entry = json!({
                "manager": by.name, "operation": "Update", "apiVersion": by.api_version,
                "time": object::seconds(by.now), "fieldsType": "FieldsV1",
            });
            entry["fieldsV1"] = Value::Object(changes.set);
            if !by.subresource.is_empty() {
                entry["subresource"] = Value::from(by.subresource);
            }
            out.push(entry);
        }
        None => {}
    }
    out
}

fn is_own(entry: &Value, by: &Manager<'_>) -> bool {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    text("operation") == "Update"
        && text("manager") == by.name
        && text("subresource") == by.subresource
        && text("apiVersion") == by.api_version
}

/// Removes `taken` from `fields`, and parents that become empty.
fn subtract(fields: &mut Fields, taken: &Fields) {
    for (step, below) in taken {
        let Some(owned) = fields.get_mut(step) else { continue };
        let (Some(owned), Some(below)) = (owned.as_object_mut(), below.as_object()) else { continue };
        if below.keys().all(|key| key == ".") {
            fields.remove(step);
        } else if !owned.is_empty() {
            subtract(owned, below);
            if owned.keys().all(|key| key == ".") {
                fields.remove(step);
            }
        }
    }
}

fn unite(fields: &mut Fields, more: Fields) {
    for (step, below) in more {
        match fields.get_mut(&step).and_then(Value::as_object_mut) {
            Some(owned) => {
                if let Value::Object(below) = below {
                    unite(owned, below);
                }
            }
            None => {
                fields.insert(step, below);
            }
        }
    }
}

/// The differences between two objects.
struct Changes<'a> {
    rules: Rules<'a>,
    /// New fields and fields with a changed value.
    set: Fields,
    gone: Fields,
}

impl Changes<'_> {
    fn root(&mut self, old: &Value, new: &Value, subresource: &str) {
        let empty = Map::new();
        let (old, new) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
        // A new object has no status of its own: a present status consists of defaults.
        let fresh = old.is_empty() && subresource.is_empty();
        let concerns = |key: &&String| match key.as_str() {
            "apiVersion" | "kind" => false,
            "status" => !fresh,
            _ => true,
        };
        let mut names = Vec::new();
        for key in new.keys().chain(old.keys().filter(|key| !new.contains_key(*key))).filter(concerns) {
            let (before, after) = (old.get(key), new.get(key));
            names.push(key.as_str());
            let (set, gone) = self.compare(before, after, &mut names);
            names.pop();
            keep(&mut self.set, || field(key), set);
            keep(&mut self.gone, || field(key), gone);
        }
    }

    /// The fields of one value that were set and the fields that were removed, as `(set, gone)`. `None` means that
    /// nothing changed; an empty map means that the value itself changed.
    fn compare<'v>(
        &self,
        old: Option<&'v Value>,
        new: Option<&'v Value>,
        names: &mut Vec<&'v str>,
    ) -> (Option<Fields>, Option<Fields>) {
        if old == new {
            return (None, None);
        }
        if self.rules.is_one_value(names) {
            return match new {
                // An empty object that appears has no owner.
                Some(Value::Object(after)) if after.is_empty() && old.is_none() => (None, None),
                Some(_) => (Some(Fields::new()), None),
                None => (None, Some(Fields::new())),
            };
        }
        match (old, new) {
            (None | Some(Value::Object(_)), Some(Value::Object(after))) if !after.is_empty() => {
                self.compare_maps(old.and_then(Value::as_object), Some(after), names)
            }
            (Some(Value::Object(before)), None) if !before.is_empty() => self.compare_maps(Some(before), None, names),
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                let (_, gone) = self.compare_maps(Some(before), None, names);
                (Some(Fields::new()).filter(|_| after.is_empty()), gone)
            }
            (None | Some(Value::Array(_)), Some(Value::Array(_))) | (Some(Value::Array(_)), None) => {
                self.compare_lists(old, new, names)
            }
            (_, Some(_)) => (Some(Fields::new()), None),
            (_, None) => (None, Some(Fields::new())),
        }
    }

    fn compare_maps<'v>(
        &self,
        old: Option<&'v Map<String, Value>>,
        new: Option<&'v Map<String, Value>>,
        names: &mut Vec<&'v str>,
    ) -> (Option<Fields>, Option<Fields>) {
        let (mut set, mut gone) = (Fields::new(), Fields::new());
        let in_metadata = names.as_slice() == ["metadata"];
        let only_old = old.into_iter().flatten().filter(|(key, _)| new.is_none_or(|new| !new.contains_key(*key)));
        let of_new = new.into_iter().flatten().map(|(key, after)| (key, old.and_then(|old| old.get(key)), Some(after)));
        for (key, before, after) in of_new.chain(only_old.map(|(key, before)| (key, Some(before), None))) {
            if in_metadata && SERVERS.contains(&key.as_str()) {
                continue;
            }
            names.push(key);
            let (set_below, gone_below) = self.compare(before, after, names);
            names.pop();
            keep(&mut set, || field(key), set_below);
            keep(&mut gone, || field(key), gone_below);
        }
        (Some(set).filter(|set| !set.is_empty()), Some(gone).filter(|gone| !gone.is_empty()))
    }

    fn compare_lists<'v>(
        &self,
        old: Option<&'v Value>,
        new: Option<&'v Value>,
        names: &mut Vec<&'v str>,
    ) -> (Option<Fields>, Option<Fields>) {
        let items = |value: Option<&'v Value>| value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let (before, after) = (items(old), items(new));
        let whole = || if new.is_some() { (Some(Fields::new()), None) } else { (None, Some(Fields::new())) };
        let keys = match self.rules.list(names) {
            Merge::ByKeys(keys) => Some(keys),
            Merge::Set => None,
            Merge::Atomic => return whole(),
        };
        let known = |item: &'v Value| -> Option<Vec<Cow<'v, Value>>> {
            match &keys {
                Some(keys) => keys.iter().map(|key| known_as(item, *key)).collect(),
                None => Some(vec![Cow::Borrowed(item)]),
            }
        };
        if (after.is_empty() && before.is_empty()) || before.iter().chain(after).any(|item| known(item).is_none()) {
            return whole();
        }
        let notation = |item: &'v Value| match &keys {
            Some(keys) => {
                let values = known(item).unwrap_or_default();
                let named = keys.iter().zip(values).map(|((key, _), value)| ((*key).to_owned(), value.into_owned()));
                format!("k:{}", Value::Object(named.collect()))
            }
            None => format!("v:{item}"),
        };
        let known_by = |item: &'v Value| known(item).unwrap_or_default();
        let index = |list: &'v [Value]| -> HashMap<Vec<Cow<'v, Value>>, &'v Value> {
            // Of several items with one key the first counts.
            list.iter().rev().map(|item| (known_by(item), item)).collect()
        };
        let (in_before, in_after) = (index(before), index(after));
        let (mut set, mut gone) = (Fields::new(), Fields::new());
        for item in after {
            let partner = in_before.get(&known_by(item)).copied();
            let (mut set_below, gone_below) = self.compare(partner, Some(item), names);
            // A writer that adds an item owns the item and its content.
            if let Some(fields) = set_below.as_mut().filter(|fields| !fields.is_empty())
                && partner.is_none()
            {
                fields.insert(".".to_owned(), json!({}));
            }
            keep(&mut set, || notation(item), set_below);
            keep(&mut gone, || notation(item), gone_below);
        }
        for item in before.iter().filter(|item| !in_after.contains_key(&known_by(item))) {
            gone.insert(notation(item), json!({}));
        }
        (Some(set).filter(|set| !set.is_empty()), Some(gone).filter(|gone| !gone.is_empty()))
    }
}

/// The value of an item's key field, or the default if the field is absent.
fn known_as<'v>(item: &'v Value, (key, default): (&str, Option<&Value>)) -> Option<Cow<'v, Value>> {
    match item.get(key) {
        Some(_) => key_of(item, (key, None)).map(Cow::Borrowed),
        None => default.filter(|_| item.is_object()).cloned().map(Cow::Owned),
    }
}

/// Adds a step and the fields below that step to a set of fields; does nothing if there are no fields below the step.
fn keep(fields: &mut Fields, step: impl FnOnce() -> String, below: Option<Fields>) {
    if let Some(below) = below {
        fields.insert(step(), Value::Object(below));
    }
}

fn field(name: &str) -> String {
    format!("f:{name}")
}
