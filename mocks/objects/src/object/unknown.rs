//! Finds and drops fields that a built-in type does not have.
//!
//! Unknown fields of built-in types are found with the table of all fields; the real server drops them while it
//! decodes. For custom resources, schemas find unknown fields.

use serde_json::{Map, Value};

use crate::builtin::{self, Kind, OBJECT_META, find, message};
use crate::catalogue::Resource;

/// Maximum number of names of unknown fields that are collected, as in the real decoder; all unknown fields are
/// dropped.
const NAMES_MAX: usize = 100;

/// Drops the unknown fields of an object; returns their paths.
pub fn drop_unknown(value: &mut Value, resource: &Resource) -> Vec<String> {
    let mut unknown = Vec::new();
    if resource.custom {
        // The metadata has the same type in all kinds.
        if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
            walk(metadata, OBJECT_META, "metadata", &mut unknown);
        }
        return unknown;
    }
    let name = resource.type_in(value["apiVersion"].as_str().unwrap_or_default());
    if message(name).is_some()
        && let Some(object) = value.as_object_mut()
    {
        walk(object, name, "", &mut unknown);
    }
    unknown
}

/// Drops the unknown fields of a kind that is not a resource; returns their paths.
pub(super) fn drop_unknown_of(kind: &str, object: &mut Map<String, Value>) -> Vec<String> {
    let mut unknown = Vec::new();
    walk(object, kind, "", &mut unknown);
    unknown
}

fn walk(object: &mut Map<String, Value>, kind: &str, at: &str, unknown: &mut Vec<String>) {
    object.retain(|name, value| {
        if matches!(name.as_str(), "apiVersion" | "kind") && (at.is_empty() || builtin::is_kind(kind)) {
            return true;
        }
        let path = || if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        let Some(field) = find(kind, name) else {
            if unknown.len() < NAMES_MAX {
                unknown.push(path());
            }
            return false;
        };
        let below = match field.kind {
            Kind::Message(below) => below,
            Kind::Either(either) => builtin::first(either).unwrap_or_default(),
            _ => return true,
        };
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Value::Object(item) = item {
                        walk(item, below, &format!("{}[{index}]", path()), unknown);
                    }
                }
            }
            Value::Object(entries) if field.map => {
                for (key, entry) in entries.iter_mut() {
                    if let Value::Object(entry) = entry {
                        walk(entry, below, &format!("{}.{key}", path()), unknown);
                    }
                }
            }
            Value::Object(inner) => walk(inner, below, &path(), unknown),
            _ => {}
        }
        true
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalogue::Catalogue;

    fn dropped(full_name: &str, value: &mut Value) -> Vec<String> {
        drop_unknown(value, Catalogue::builtin().by_full_name(full_name).unwrap())
    }

    /// `apiVersion` and `kind` are known fields of a whole object, but unknown fields of nested objects.
    #[test]
    fn the_type_belongs_to_the_whole() {
        let mut value = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "kind": "x", "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "odd": 1},
            ]},
            "spec": {"apiVersion": "x", "containers": []},
        });
        let unknown = ["metadata.kind", "metadata.ownerReferences[0].odd", "spec.apiVersion"];
        assert_eq!(dropped("pods", &mut value), unknown);
    }

    #[test]
    fn the_metadata_of_custom_resources_has_no_other_fields() {
        let mut resource = Resource::clone(Catalogue::builtin().by_full_name("pods").unwrap());
        resource.custom = true;
        let mut value = json!({"metadata": {"name": "a", "lables": {}}, "spec": {"any": 1}});
        assert_eq!(drop_unknown(&mut value, &resource), ["metadata.lables"]);
        assert_eq!((&value["spec"], value["metadata"].get("lables")), (&json!({"any": 1}), None));
    }

    /// The number of reported names is limited, but all unknown fields are dropped.
    #[test]
    fn names_are_told_up_to_a_bound() {
        let odd = (0..150).map(|n| (format!("odd{n}"), json!(n)));
        let mut value = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}});
        value.as_object_mut().unwrap().extend(odd);
        assert_eq!(dropped("configmaps", &mut value).len(), NAMES_MAX);
        assert_eq!(value, json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}));
    }

    #[test]
    fn each_api_has_its_own_fields() {
        let mut newer = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "n", "message": "m"});
        assert_eq!(dropped("events.events.k8s.io", &mut newer), ["message"]);
    }
}
