//! Makes workload objects of both servers comparable, and compares them.
//!
//! This module replaces random values (uids, revisions, times, addresses, names, hashes of templates), and has the list
//! of intended differences.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Intended differences between the mock and a real server, as substrings of a JSON pointer.
const MEANT: [&str; 3] = [
    // The mock does not protect claims and volumes in use: `mocks/DIFFERENCES.md`.
    "/metadata/finalizers",
    // Addresses and revisions differ.
    "/spec/clusterIP",
    "/spec/claimRef/resourceVersion",
];
/// The annotation of `Endpoints` and `EndpointSlices` with the time of the newest Pod change that led to the write. The
/// time in this annotation differs in each run.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// The Service of the API server itself, which each server creates.
const OWN: &str = "kubernetes";

/// The objects of both servers in pairs, in an order that does not depend on chance.
pub fn both(real: &[Value], mock: &[Value]) -> Vec<(Value, Value)> {
    let (real, mock) = (side(real), side(mock));
    real.into_iter().zip(mock).collect()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn side(lists: &[Value]) -> Vec<Value> {
    let names = names(lists);
    let all = lists.iter().map(|list| {
        let mut items: Vec<Value> = items(list)
            .iter()
            .filter(|item| text(item, "/metadata/name") != OWN)
            .map(|item| {
                let mut item = plain(item, &names, "");
                drop_volatile(&mut item);
                item
            })
            .collect();
        items.sort_by_key(|item| (text(item, "/metadata/name").to_owned(), item.to_string()));
        Value::from(items)
    });
    all.collect()
}

/// Random names and their replacements. The longest names come first, so that no name is a part of a later name.
fn names(lists: &[Value]) -> Vec<(String, String)> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for item in lists.iter().flat_map(items) {
        // The hash of a template is replaced by its owner and a number.
        let label = |key: &str| item["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
        let owner = text(item, "/metadata/ownerReferences/0/name").to_owned();
        let number = match item.get("revision").and_then(Value::as_i64) {
            Some(revision) => revision.to_string(),
            None => item["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        if !number.is_empty() && item.get("kind").is_none_or(|kind| kind != "Deployment") && !owner.is_empty() {
            for key in ["pod-template-hash", "controller.kubernetes.io/hash", "controller-revision-hash"] {
                let hash = label(key);
                if !hash.is_empty() {
                    names.insert(hash, format!("<hash {number} of {owner}>"));
                }
            }
        }
        let (name, prefix) = (text(item, "/metadata/name"), text(item, "/metadata/generateName"));
        if !prefix.is_empty() && name.len() == prefix.len() + 5 && name.starts_with(prefix) {
            names.insert(name[prefix.len()..].to_owned(), "<x>".to_owned());
        }
    }
    let mut names: Vec<(String, String)> = names.into_iter().collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

fn plain(value: &Value, names: &[(String, String)], at: &str) -> Value {
    match value {
        Value::String(text) => Value::from(word(text, names)),
        Value::Array(list) => {
            let mut list: Vec<Value> = list.iter().map(|value| plain(value, names, at)).collect();
            // Conditions, endpoints and similar lists have no meaningful order.
            if list.iter().all(Value::is_object) && !at.ends_with("/containers") {
                list.sort_by_key(ToString::to_string);
            }
            Value::from(list)
        }
        Value::Object(map) => {
            let map = map.iter().map(|(key, value)| (word(key, names), plain(value, names, &format!("{at}/{key}"))));
            Value::Object(map.collect::<Map<String, Value>>())
        }
        other => other.clone(),
    }
}

fn word(text: &str, names: &[(String, String)]) -> String {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return "<time>".to_owned();
    }
    if text.parse::<std::net::IpAddr>().is_ok() {
        return "<address>".to_owned();
    }
    let is_uid = |part: &str| {
        part.len() == 36
            && part
                .chars()
                .enumerate()
                .all(|(at, c)| if [8, 13, 18, 23].contains(&at) { c == '-' } else { c.is_ascii_hexdigit() })
    };
    if is_uid(text) {
        return "<uid>".to_owned();
    }
    if let Some(uid) = text.strip_prefix("pvc-").filter(|rest| is_uid(rest)) {
        return text.replace(uid, "<uid>");
    }
    names.iter().fold(text.to_owned(), |text, (name, instead)| text.replace(name, instead))
}

/// Removes random values, and values that the test itself writes on the real server.
fn drop_volatile(item: &mut Value) {
    let generation = item["metadata"]["generation"].clone();
    // The number of steps of a rollout is random; that the status belongs to the newest one is not.
    let steps = item["spec"].get("replicas").is_some() && item["metadata"]["labels"].get("pod-template-hash").is_some();
    let is_slice = item.get("addressType").is_some();
    if steps && item["status"]["observedGeneration"] == generation {
        item["status"]["observedGeneration"] = Value::from("that of the object");
    }
    if item["spec"].get("containers").is_some() {
        // This is the kubelet's part.
        item["status"] = Value::Null;
    }
    let Some(meta) = item.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for key in ["managedFields", "resourceVersion"] {
        meta.remove(key);
    }
    if steps || is_slice {
        meta.remove("generation");
    }
    if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(TRIGGER);
        if annotations.is_empty() {
            meta.remove("annotations");
        }
    }
}

/// Collects the unintended differences between two objects.
pub fn differences(real: &Value, mock: &Value, at: &str, found: &mut Vec<String>) {
    if real == mock || MEANT.iter().any(|meant| at.contains(meant)) {
        return;
    }
    match (real, mock) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let (one, other) = (one.get(key).unwrap_or(&Value::Null), other.get(key).unwrap_or(&Value::Null));
                differences(one, other, &format!("{at}/{key}"), found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (one, other) in one.iter().zip(other) {
                let name = text(one, "/metadata/name");
                differences(one, other, &format!("{at}/{}", if name.is_empty() { "-" } else { name }), found);
            }
        }
        _ => found.push(format!("{at}\n    real: {real}\n    mock: {mock}")),
    }
}
