//! Server-side apply (Kubernetes documentation, "Server-Side Apply"; KEP-555).
//!
//! Merges an applied object into a stored object. The fields of the applied object are set. A field that the same
//! manager applied earlier and now omits is removed, unless another manager owns it too. A field that another manager
//! owns with a different value is a conflict, unless the request forces the change.

mod last_applied;

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::manager::Manager;
use super::owners::{Owners, Path, Places, Step, gone_version};
use super::removal::Removal;
use super::schema::{Merge, Rules, key_of};
use super::tracking::before_first_apply;
use crate::catalogue::Resource;
use crate::object;
use crate::status::Failure;

/// Applies the fields in `given` to `value` and records the owners.
pub fn apply(value: &mut Value, given: &Value, by: &Manager<'_>, resource: &Resource) -> Result<(), Failure> {
    let mut intent = given.clone();
    strip(&mut intent);
    let exists = !object::meta(value, "uid").is_empty();
    if exists && value["metadata"]["managedFields"].as_array().is_none_or(Vec::is_empty) {
        before_first_apply(value, by, resource);
    }
    let entries = value["metadata"]["managedFields"].as_array();
    if let Some(version) = entries.and_then(|entries| gone_version(entries, resource)) {
        return Err(Failure::plain(format!("request to convert CR to an invalid group/version: {version}")));
    }
    let mut owners = Owners::read(value);
    let rules = Rules::of(resource, by.api_version);
    let mut leaves = Leaves { rules, found: Vec::new(), wrong: Vec::new() };
    leaves.collect(&intent, &mut Vec::new());
    if !leaves.wrong.is_empty() {
        return Err(untyped(&intent, &leaves.wrong));
    }
    let wanted = leaves.found;

    let mut places = Places::default();
    let others = owners.others(by.name, by.subresource);
    let (mut conflicts, mut changes) = (Vec::new(), false);
    for (path, new) in &wanted {
        if path.find(value, &mut places) != Some(new) {
            changes = true;
            conflicts.extend(others.of(path).map(|other| (other, path.clone())));
        }
    }
    if !conflicts.is_empty() {
        let refused = match by.name {
            _ if by.force => Vec::new(),
            last_applied::MANAGER => last_applied::beyond(value, &conflicts, rules),
            _ => conflicts.clone(),
        };
        if !refused.is_empty() {
            return Err(conflict(&refused));
        }
        let taken: HashSet<&Path> = conflicts.iter().map(|(_, path)| path).collect();
        owners.take_from_others(&taken, by.name, by.subresource);
    }
    let now: Vec<Path> = wanted.iter().map(|(path, _)| path.clone()).collect();
    drop_unwanted(value, &owners, by, &now);
    places.forget();
    for (path, new) in wanted {
        if new.is_object() && is_atomic(&path.0, rules) {
            // The new value replaces the old one, even if it is empty.
            path.set(value, Value::Null, &mut places);
        }
        path.set(value, new, &mut places);
    }
    for key in ["apiVersion", "kind"] {
        if let Some(text) = intent.get(key) {
            value[key] = text.clone();
        }
    }
    owners.record(by, now, changes);
    owners.write(value);
    if by.name == last_applied::MANAGER && by.subresource.is_empty() {
        last_applied::note(value, given);
    }
    Ok(())
}

/// Sets the fields of `given` in `value` and records no field manager, as a mutating policy does. The error says why
/// the fields cannot be set.
pub fn merge(value: &mut Value, given: &Value, resource: &Resource, api_version: &str) -> Result<(), String> {
    let rules = Rules::of(resource, api_version);
    let mut leaves = Leaves { rules, found: Vec::new(), wrong: Vec::new() };
    leaves.collect(given, &mut Vec::new());
    let undeclared = leaves.found.iter().find_map(|(path, _)| {
        let depth = (1..=path.0.len()).find(|depth| !rules.declares(&names(&path.0[..*depth])))?;
        Some(Path(path.0[..depth].to_vec()))
    });
    if let Some(path) = undeclared {
        return Err(format!("failed to convert patch object to typed object: {path}: field not declared in schema"));
    }
    if let Some(wrong) = leaves.wrong.first() {
        return Err(format!("failed to convert patch object to typed object: {wrong}"));
    }
    let is_whole = |path: &Path, new: &Value| match new {
        Value::Array(_) => matches!(rules.list(&names(&path.0)), Merge::Atomic),
        Value::Object(_) => is_atomic(&path.0, rules),
        _ => false,
    };
    let whole: Vec<String> =
        leaves.found.iter().filter(|(path, new)| is_whole(path, new)).map(|(path, _)| path.to_string()).collect();
    if !whole.is_empty() {
        let whole = whole.join(", ");
        return Err(format!("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {whole}"));
    }
    let mut places = Places::default();
    for (path, new) in leaves.found {
        path.set(value, new, &mut places);
    }
    Ok(())
}

/// Removes fields that the manager applied before, now omits, and shares with no other manager.
fn drop_unwanted(value: &mut Value, owners: &Owners, by: &Manager<'_>, now: &[Path]) {
    // The wanted fields, and their parents.
    let kept: HashSet<&[Step]> = now.iter().flat_map(|path| (1..=path.0.len()).map(|depth| &path.0[..depth])).collect();
    let others = owners.others(by.name, by.subresource);
    let key_is_owned = |item: &[Step]| others.own_key(item);
    let mut removal = Removal::new(&key_is_owned);
    for path in &owners.applied_by(by.name, by.subresource) {
        if !kept.contains(path.0.as_slice()) && !others.own(path) {
            removal.take(value, path);
        }
    }
    removal.finish(value);
}

/// Refuses an applied object that contains `managedFields`.
pub fn check_intent(intent: &Value) -> Result<(), Failure> {
    if intent["metadata"].get("managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// The error for an applied object that does not fit its type. The real server's library returns a plain error in this
/// case, so the answer is a 500 without a reason.
pub fn untyped(intent: &Value, wrong: &[String]) -> Failure {
    let text = |key: &str| intent[key].as_str().unwrap_or_default();
    // The core group has an empty name.
    let group = if text("apiVersion").contains('/') { "" } else { "/" };
    let (namespace, name) = (object::meta(intent, "namespace"), object::meta(intent, "name"));
    let about = format!("{namespace}/{name}; {group}{}, Kind={}", text("apiVersion"), text("kind"));
    let wrong = match wrong {
        [one] => one.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    };
    Failure::plain(format!("failed to create typed patch object ({about}): {wrong}"))
}

/// Collects the leaves of an applied object: plain values, lists that are replaced as a whole, and empty objects.
struct Leaves<'a> {
    rules: Rules<'a>,
    found: Vec<(Path, Value)>,
    /// Errors about list items without a usable key.
    wrong: Vec<String>,
}

impl Leaves<'_> {
    fn collect(&mut self, value: &Value, path: &mut Vec<Step>) {
        match value {
            Value::Object(map) if !map.is_empty() && !is_atomic(path, self.rules) => {
                for (key, inner) in map {
                    if path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind") {
                        continue;
                    }
                    path.push(Step::Field(key.clone()));
                    self.collect(inner, path);
                    path.pop();
                }
            }
            Value::Array(items) if !items.is_empty() => match self.rules.list(&names(path)) {
                Merge::ByKeys(keys) => self.items(items, &keys, path),
                Merge::Set => {
                    let mut seen = HashSet::new();
                    for item in items {
                        path.push(Step::Value(item.clone()));
                        if !seen.insert(item) {
                            self.note(path, "duplicate entries for key");
                        }
                        self.found.push((Path(path.clone()), item.clone()));
                        path.pop();
                    }
                }
                Merge::Atomic => self.found.push((Path(path.clone()), value.clone())),
            },
            other => self.found.push((Path(path.clone()), other.clone())),
        }
    }

    fn items(&mut self, items: &[Value], keys: &[(&str, Option<&Value>)], path: &mut Vec<Step>) {
        let mut seen = HashSet::new();
        for item in items {
            let mut known_by = Vec::new();
            for key in keys {
                let Some(value) = key_of(item, *key) else {
                    let at = Path(path.clone());
                    let why = "associative list with keys has an element that omits key field";
                    return self.wrong.push(format!("{at}: {why} {:?} (and doesn't have default value)", key.0));
                };
                known_by.push((key.0.to_owned(), value.clone()));
            }
            path.push(Step::Key(known_by));
            if !seen.insert(path.last().cloned()) {
                self.note(path, "duplicate entries for key");
            }
            self.collect(item, path);
            path.pop();
        }
    }

    /// Adds an error about the item at the end of `path`.
    fn note(&mut self, path: &[Step], why: &str) {
        let Some((item, list)) = path.split_last() else { return };
        self.wrong.push(format!("{}: {why} {}", Path(list.to_vec()), Path(vec![item.clone()])));
    }
}

fn names(path: &[Step]) -> Vec<&str> {
    path.iter().filter_map(Step::field).collect()
}

/// Whether the object at the end of `path` is replaced as a whole; an item of a list is not a field.
fn is_atomic(path: &[Step], rules: Rules<'_>) -> bool {
    path.last().and_then(Step::field).is_some_and(|_| rules.is_one_value(&names(path)))
}

/// Removes fields that an applied object may contain but that no manager can own.
fn strip(intent: &mut Value) {
    let meta: &mut Map<String, Value> = object::metadata(intent);
    for key in
        ["name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"]
    {
        meta.remove(key);
    }
    if meta.is_empty()
        && let Some(object) = intent.as_object_mut()
    {
        object.remove("metadata");
    }
}

fn conflict(conflicts: &[(String, Path)]) -> Failure {
    let causes: Vec<Value> = conflicts
        .iter()
        .map(|(manager, path)| {
            let message = format!("conflict with {manager}");
            json!({"reason": "FieldManagerConflict", "message": message, "field": path.to_string()})
        })
        .collect();
    let plural = if conflicts.len() == 1 { "conflict" } else { "conflicts" };
    let fields: Vec<String> =
        conflicts.iter().map(|(manager, path)| format!("conflict with {manager}: {path}")).collect();
    let message = format!("Apply failed with {} {plural}: {}", conflicts.len(), fields.join(", "));
    Failure::new(http::StatusCode::CONFLICT, "Conflict", message).with(json!({"causes": causes}))
}
