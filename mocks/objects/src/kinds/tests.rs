use serde_json::json;

use crate::catalogue::Catalogue;
use crate::{defaults, object};

/// The fields with errors in an object as a client sends it.
fn wrong(full_name: &str, mut value: serde_json::Value) -> Vec<String> {
    let catalogue = Catalogue::builtin();
    let resource = catalogue.by_full_name(full_name).unwrap();
    defaults::apply(&mut value, resource, jiff::Timestamp::UNIX_EPOCH);
    object::check_content(&value, None, resource).into_iter().map(|cause| cause.field).collect()
}

#[test]
fn expressions_select_labels_too() {
    let set = |operator: &str, values: serde_json::Value| {
        let selector = json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
        let template =
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        wrong("replicasets.apps", json!({"spec": {"selector": selector, "template": template}}))
    };
    assert_eq!(set("In", json!(["b", "c"])), Vec::<String>::new());
    assert_eq!(set("Exists", json!([])), Vec::<String>::new());
    assert_eq!(set("NotIn", json!(["b"])), ["spec.template.metadata.labels"]);
    assert_eq!(set("DoesNotExist", json!([])), ["spec.template.metadata.labels"]);
}
