//! Objects in a form in which two plays can be compared: without times, revisions and generated names.
//!
//! Owns which values can never be equal in two plays. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::audit::{Object, is_ignored};

/// The value that stands for any time.
pub(crate) const TIME: &str = "<time>";
/// The field that says which spec a status is about, and the value that stands for the present one.
const OBSERVED: &str = "status.observedGeneration";
pub(crate) const GENERATION: &str = "<generation>";
/// The value that stands for any IP address: the control plane gives addresses in the order of creations.
const ADDRESS: &str = "<address>";
/// Metadata that differs in each play.
const OF_PLAY: [&str; 6] = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"];
/// Fields at any depth that count writes or name an object by its identity. The controller of Deployments counts the
/// templates of a Deployment in an annotation: a subject that sees two changes at once writes one template less.
const COUNTERS: [&str; 4] = ["observedGeneration", "uid", "containerID", "deployment.kubernetes.io/revision"];
/// Keys that identify the items of a list.
const IDENTITIES: [&str; 4] = ["type", "name", "key", "containerPort"];
/// The length of the generated part of a name, and its characters (`SimpleNameGenerator` in
/// `k8s.io/apiserver/pkg/storage/names`).
const GENERATED_LENGTH: usize = 5;
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";
/// Maximum number of leaves of one object.
const LEAVES_MAX: usize = 4096;

/// The leaves of an object by their paths, such as `status.conditions[Ready].reason`.
pub(crate) type Leaves = BTreeMap<String, Value>;

/// The objects of a play by resource, namespace and name. Objects with generated names are numbered.
pub(crate) fn objects(all: &[Object]) -> BTreeMap<String, Leaves> {
    let prefixes: BTreeSet<&str> = all
        .iter()
        .filter_map(|one| one.object["metadata"]["generateName"].as_str())
        .filter(|it| !it.is_empty())
        .collect();
    let mut named: BTreeMap<String, Vec<Leaves>> = BTreeMap::new();
    for Object { resource, object } in all.iter().filter(|one| !is_ignored(&one.resource) && !is_history(one)) {
        named.entry(key(resource, object)).or_default().push(leaves(object, &prefixes));
    }
    let mut keyed = BTreeMap::new();
    for (key, mut same) in named {
        if let [_] = same.as_slice() {
            keyed.extend(same.pop().map(|leaves| (key, leaves)));
            continue;
        }
        same.sort_by_cached_key(|leaves| serde_json::to_string(leaves).unwrap_or_default());
        keyed.extend(same.into_iter().enumerate().map(|(number, leaves)| (format!("{key}#{}", number + 1), leaves)));
    }
    keyed
}

/// Whether an object only keeps an earlier template of another object. A subject that reads two changes at once writes
/// one template instead of two.
fn is_history(one: &Object) -> bool {
    match one.resource.as_str() {
        "controllerrevisions.apps" => true,
        "replicasets.apps" => {
            let owners = one.object["metadata"]["ownerReferences"].as_array();
            let is_of_a_deployment = owners.into_iter().flatten().any(|owner| owner["kind"] == "Deployment");
            is_of_a_deployment && one.object["spec"]["replicas"] == 0
        }
        _ => false,
    }
}

/// The resource in a key of [`objects`].
pub(crate) fn resource_of(key: &str) -> &str {
    key.split_once(' ').map_or(key, |(resource, _)| resource)
}

/// The key of an object in [`objects`], if no other object has the same generated name.
pub(crate) fn key(resource: &str, object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let name = match text("generateName") {
        "" => text("name").to_owned(),
        generated => format!("{generated}*"),
    };
    match text("namespace") {
        "" => format!("{resource} {name}"),
        namespace => format!("{resource} {namespace}/{name}"),
    }
}

fn leaves(object: &Value, prefixes: &BTreeSet<&str>) -> Leaves {
    let observed = observed(object);
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|key, _| !OF_PLAY.contains(&key.as_str()));
        if metadata.contains_key("generateName") {
            metadata.remove("name");
        }
    }
    let mut leaves = Leaves::new();
    walk(&object, String::new(), &mut leaves);
    leaves.extend(observed.map(|observed| (OBSERVED.to_owned(), observed.into())));
    if !prefixes.is_empty() {
        for value in leaves.values_mut() {
            mask(value, prefixes);
        }
    }
    leaves
}

/// Whether a status is about the present spec. The numbers count writes, so only their equality means something.
fn observed(object: &Value) -> Option<&'static str> {
    let (present, observed) =
        (object["metadata"]["generation"].as_u64()?, object["status"]["observedGeneration"].as_u64()?);
    Some(if present == observed { GENERATION } else { "an older generation" })
}

/// Replaces generated names in a text, or in the texts of a list. An object may name others that are gone.
fn mask(value: &mut Value, prefixes: &BTreeSet<&str>) {
    match value {
        Value::String(text) => {
            if let Some(masked) = masked(text, prefixes) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, prefixes)),
        _ => {}
    }
}

/// A text without the generated parts of its names; `None` if it has none.
fn masked(text: &str, prefixes: &BTreeSet<&str>) -> Option<String> {
    let generated = |word: &str| {
        let (prefix, end) = word.split_at_checked(word.len().checked_sub(GENERATED_LENGTH)?)?;
        let is_name = prefixes.contains(prefix) && end.chars().all(|one| GENERATED.contains(one));
        is_name.then(|| format!("{prefix}*"))
    };
    let words: Vec<&str> = text.split(' ').collect();
    let masked: Vec<Option<String>> = words.iter().map(|word| generated(word)).collect();
    if masked.iter().all(Option::is_none) {
        return None;
    }
    let words = words.into_iter().zip(masked).map(|(word, masked)| masked.unwrap_or_else(|| word.to_owned()));
    Some(words.collect::<Vec<_>>().join(" "))
}

fn walk(value: &Value, path: String, leaves: &mut Leaves) {
    if leaves.len() >= LEAVES_MAX {
        return;
    }
    match value {
        Value::Object(keys) => {
            for (key, value) in keys.iter().filter(|(key, _)| !COUNTERS.contains(&key.as_str())) {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(value, below, leaves);
            }
        }
        Value::Array(items) if items.iter().all(Value::is_object) && !items.is_empty() => {
            let identity = IDENTITIES.into_iter().find(|key| items.iter().all(|item| !item[key].is_null()));
            for (number, item) in items.iter().enumerate() {
                let place = match identity {
                    Some(key) => item[key].as_str().map_or_else(|| item[key].to_string(), str::to_owned),
                    None => number.to_string(),
                };
                walk(item, format!("{path}[{place}]"), leaves);
            }
        }
        Value::Array(items) => {
            // The order of plain values depends on the order of writes.
            let mut plain: Vec<Value> = items.iter().map(timeless).collect();
            plain.sort_by_cached_key(Value::to_string);
            leaves.insert(path, Value::Array(plain));
        }
        Value::String(text) if text.starts_with('{') => match serde_json::from_str(text) {
            // Clients keep a copy of an object as text in an annotation.
            Ok(inner @ Value::Object(_)) => walk(&inner, path, leaves),
            _ => _ = leaves.insert(path, value.clone()),
        },
        plain => {
            leaves.insert(path, timeless(plain));
        }
    }
}

/// A plain value; times and addresses are the same in each play.
fn timeless(value: &Value) -> Value {
    match value {
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => TIME.into(),
        Value::String(text) if text.parse::<std::net::IpAddr>().is_ok() => ADDRESS.into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(resource: &str, object: Value) -> Object {
        Object { resource: resource.to_owned(), object }
    }

    /// Two plays of the same program differ only in values that carry no meaning.
    #[test]
    fn times_identities_and_orders_are_no_difference() {
        let play = |uid: &str, time: &str, flip: bool| {
            let mut conditions =
                vec![json!({"type": "A", "at": time}), json!({"type": "B", "observedGeneration": uid.len()})];
            let mut finalizers = vec!["x", "y"];
            if flip {
                conditions.reverse();
                finalizers.reverse();
            }
            let made = json!({"metadata": {"name": "a", "namespace": "n", "uid": uid, "creationTimestamp": time,
                "resourceVersion": uid, "finalizers": finalizers, "ownerReferences": [{"name": "o", "uid": uid}]},
                "status": {"conditions": conditions}});
            objects(&[object("caches.x", made)])
        };
        let (one, other) = (play("u1", "2026-01-01T00:00:00Z", false), play("u22", "2026-01-02T00:00:09.5Z", true));
        assert_eq!(one, other);
        let leaves = &one["caches.x n/a"];
        assert_eq!(leaves["status.conditions[A].at"], TIME);
        assert_eq!(leaves["metadata.finalizers"], json!(["x", "y"]));
    }

    /// A subject that reads two changes at once writes one template instead of two, and that is no bug.
    #[test]
    fn the_number_of_templates_is_no_difference() {
        let play = |revision: &str| {
            let annotations = json!({"deployment.kubernetes.io/revision": revision, "x/owner": "a"});
            objects(&[object("deployments.apps", json!({"metadata": {"name": "a", "annotations": annotations}}))])
        };
        assert_eq!(play("4"), play("5"));
        assert_eq!(play("4")["deployments.apps a"]["metadata.annotations.x/owner"], json!("a"));
        let set = |owner: &str, replicas: u8| {
            let metadata = json!({"name": "a-1", "ownerReferences": [{"kind": owner, "name": "a"}]});
            objects(&[object("replicasets.apps", json!({"metadata": metadata, "spec": {"replicas": replicas}}))]).len()
        };
        assert_eq!((set("Deployment", 0), set("Deployment", 1), set("Cache", 0)), (0, 1, 1));
    }

    /// A status about an older spec is a difference, and the number of the generation is none.
    #[test]
    fn a_status_about_an_older_spec_is_a_difference() {
        let play = |generation: u64, observed: u64| {
            let metadata = json!({"name": "a", "namespace": "n", "generation": generation});
            objects(&[object("caches.x", json!({"metadata": metadata, "status": {"observedGeneration": observed}}))])
        };
        assert_eq!(play(3, 3), play(5, 5));
        assert_ne!(play(5, 5), play(5, 4));
        assert_eq!(play(5, 5)["caches.x n/a"][OBSERVED], GENERATION);
    }

    /// The control plane gives the next free address, so an address depends on the order of creations.
    #[test]
    fn addresses_are_no_difference() {
        let play = |address: &str, port: u16| {
            let status = json!({"podIP": address, "podIPs": [{"ip": address}], "addresses": [address], "port": port});
            objects(&[object("pods", json!({"metadata": {"name": "a", "namespace": "n"}, "status": status}))])
        };
        assert_eq!(play("10.244.1.2", 80), play("10.244.1.3", 80));
        assert_eq!(play("10.244.1.2", 80), play("fd00::7", 80));
        assert_ne!(play("10.244.1.2", 80), play("10.244.1.2", 81));
    }

    /// A copy of an object in an annotation is compared like an object.
    #[test]
    fn a_copy_in_an_annotation_is_compared_by_its_fields() {
        let play = |copy: Value| {
            let annotations = json!({"x/copy": copy.to_string()});
            objects(&[object("services", json!({"metadata": {"name": "a", "annotations": annotations}}))])
        };
        let at = |time: &str, ip: &str, size: u8| json!({"at": time, "spec": {"ip": ip, "size": size}});
        assert_eq!(play(at("2026-01-01T00:00:00Z", "10.96.0.3", 1)), play(at("2026-01-02T00:00:00Z", "10.96.0.5", 1)));
        let play = play(at("2026-01-01T00:00:00Z", "10.96.0.3", 2));
        assert_eq!(play["services a"]["metadata.annotations.x/copy.spec.size"], json!(2));
    }

    #[test]
    fn generated_names_are_numbers() {
        let pod = |name: &str, node: &str| {
            object("pods", json!({"metadata": {"name": name, "generateName": "a-", "namespace": "n"}, "node": node}))
        };
        let event = object("events", json!({"metadata": {"name": "e"}}));
        let play = objects(&[pod("a-xyz", "2"), pod("a-abc", "1"), event]);
        assert_eq!(play.keys().collect::<Vec<_>>(), ["pods n/a-*#1", "pods n/a-*#2"]);
        assert_eq!(play, objects(&[pod("a-1", "1"), pod("a-2", "2")]));
        assert_eq!(resource_of("pods n/a-*#1"), "pods");
    }

    /// A generated name in the value of another object is no difference, and any other text is.
    #[test]
    fn generated_names_in_values_are_masked() {
        let play = |name: &str, other: &str| {
            let made = json!({"metadata": {"name": name, "generateName": "a-", "namespace": "n"}});
            let status = json!({"receipt": name, "text": format!("made {name} again"), "all": [name], "other": other});
            let owner = json!({"metadata": {"name": "o", "namespace": "n"}, "status": status});
            objects(&[object("pods", made), object("caches.x", owner)])
        };
        assert_eq!(play("a-bcdf2", "x"), play("a-xz456", "x"));
        assert_ne!(play("a-bcdf2", "a-one"), play("a-bcdf2", "a-two"), "too short");
        assert_eq!(play("a-bcdf2", "x")["caches.x n/o"]["status.text"], "made a-* again");
    }
}
