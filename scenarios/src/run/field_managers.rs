//! The field manager that owns a field, read from `metadata.managedFields`. Does no I/O.

use serde_json::Value;

/// The field managers of Kubernetes' own components.
const OF_KUBERNETES: [&str; 6] = [
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-apiserver",
    "kube-proxy",
    "cloud-controller-manager",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct FieldManager {
    name: String,
    subresource: String,
}

impl FieldManager {
    pub(in crate::run) fn is_of_kubernetes(&self) -> bool {
        OF_KUBERNETES.contains(&self.name.as_str())
    }

    /// The name of the field manager, with the subresource if it has one, such as `manager (status)`.
    pub(in crate::run) fn shown(&self) -> String {
        if self.subresource.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.subresource) }
    }
}

/// The owner of the value at a JSON pointer: the manager whose fields match the longest part of the pointer. If several
/// managers match, the last writer counts. The owner of a list owns all values in it, because keys of lists are not
/// resolved.
pub(in crate::run) fn owner(object: &Value, pointer: &str) -> Option<FieldManager> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let best = entries.iter().max_by_key(|entry| (depth(&entry["fieldsV1"], pointer), text(entry, "time")))?;
    let manager = FieldManager { name: text(best, "manager"), subresource: text(best, "subresource") };
    (!manager.name.is_empty()).then_some(manager)
}

/// The owner of an entry in a list of strings, such as a finalizer.
pub(in crate::run) fn owner_of_value(object: &Value, pointer: &str, value: &str) -> Option<FieldManager> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let key = format!("v:{}", Value::from(value));
    let has = |entry: &&Value| {
        let fields =
            pointer.split('/').skip(1).try_fold(&entry["fieldsV1"], |fields, word| fields.get(format!("f:{word}")));
        fields.is_some_and(|fields| fields.get(&key).is_some())
    };
    let entry = entries.iter().find(has)?;
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    Some(FieldManager { name: text("manager"), subresource: text("subresource") })
}

/// Number of leading segments of the pointer that occur in `fields`.
fn depth(fields: &Value, pointer: &str) -> usize {
    let mut at = Some(fields);
    let words = pointer.split('/').skip(1).map(|word| word.replace("~1", "/").replace("~0", "~"));
    words
        .take_while(|word| {
            at = at.and_then(|fields| fields.get(format!("f:{word}")));
            at.is_some()
        })
        .count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({"metadata": {"managedFields": [
            {"manager": "kubectl", "time": "2026-01-01T00:00:09Z", "fieldsV1": {"f:spec": {"f:size": {}}, "f:status": {}}},
            {"manager": "manager", "subresource": "status", "time": "2026-01-01T00:00:01Z", "fieldsV1": {"f:status": {"f:seenAt": {}, "f:conditions": {"k:{\"type\":\"Ready\"}": {}}}}},
            {"manager": "manager", "time": "2026-01-01T00:00:02Z", "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"a.com/b\"": {}}}}},
        ]}})
    }

    #[test]
    fn the_manager_that_reaches_deepest_owns_a_field() {
        let owner = |pointer: &str| owner(&object(), pointer).map(|manager| manager.shown());
        assert_eq!(owner("/status/seenAt").as_deref(), Some("manager (status)"));
        assert_eq!(owner("/status/conditions/0/message").as_deref(), Some("manager (status)"));
        assert_eq!(owner("/spec/size").as_deref(), Some("kubectl"));
        assert_eq!(owner("/data/a").as_deref(), Some("kubectl"), "nobody's: whoever wrote last");
        assert_eq!(super::owner(&json!({"metadata": {}}), "/a"), None);
    }

    #[test]
    fn a_finalizer_has_an_owner() {
        let owner =
            |value: &str| owner_of_value(&object(), "/metadata/finalizers", value).map(|manager| manager.shown());
        assert_eq!(owner("a.com/b").as_deref(), Some("manager"));
        assert_eq!(owner("c.com/d"), None);
    }
}
