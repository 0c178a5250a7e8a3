//! JSON patch (RFC 6902), through the `json-patch` crate, with kube-apiserver's leniency: testing a missing member for
//! `null` succeeds. Controllers rely on it to add the first finalizer only where there is none.

use ::json_patch::{PatchOperation, TestOperation};
use serde_json::Value;

/// The operations of one patch.
pub(crate) type Operations = ::json_patch::Patch;

/// All operations or none.
pub(super) fn apply(value: &mut Value, operations: &Operations) -> Result<(), String> {
    let wants_null =
        |operation: &PatchOperation| matches!(operation, PatchOperation::Test(test) if test.value.is_null());
    if !operations.iter().any(wants_null) {
        return ::json_patch::patch(value, operations).map_err(|error| error.to_string());
    }
    let mut candidate = value.clone();
    for (index, operation) in operations.iter().enumerate() {
        match operation {
            PatchOperation::Test(test) if test.value.is_null() && is_absent(&candidate, test) => {}
            operation => ::json_patch::patch(&mut candidate, std::slice::from_ref(operation))
                .map_err(|error| format!("operation '/{index}' failed at path '{}': {}", error.path, error.kind))?,
        }
    }
    *value = candidate;
    Ok(())
}

/// Whether the parent is an object without that member. A missing parent is an error, as in a real server.
fn is_absent(value: &Value, test: &TestOperation) -> bool {
    let Some((parent, member)) = test.path.split_back() else { return false };
    let parent = if parent.is_root() { Some(value) } else { parent.resolve(value).ok() };
    parent.and_then(Value::as_object).is_some_and(|object| !object.contains_key(&*member.decoded()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::apply;

    fn patched(operations: Value) -> Result<Value, String> {
        let mut value = json!({"metadata": {"name": "a"}, "list": []});
        apply(&mut value, &serde_json::from_value(operations).unwrap()).map(|()| value)
    }

    #[test]
    fn a_missing_member_is_null_to_a_test_but_a_missing_parent_is_not() {
        let add =
            |at: &str| json!([{"op": "test", "path": at, "value": null}, {"op": "add", "path": at, "value": ["f"]}]);
        assert_eq!(patched(add("/metadata/finalizers")).unwrap()["metadata"]["finalizers"], json!(["f"]));
        assert_eq!(patched(add("/top")).unwrap()["top"], json!(["f"]));
        assert!(patched(add("/metadata/name")).is_err(), "it is there and not null");
        assert!(patched(add("/none/finalizers")).is_err());
        assert!(patched(add("/list/0")).is_err());
        let full = json!([{"op": "test", "path": "/metadata/finalizers", "value": []}]);
        assert!(patched(full).is_err());
    }

    #[test]
    fn a_failure_leaves_everything_as_it_was() {
        let mut value = json!({"a": 1});
        let operations = json!([{"op": "test", "path": "/b", "value": null}, {"op": "replace", "path": "/a", "value": 2},
            {"op": "test", "path": "/a", "value": 3}]);
        let why = apply(&mut value, &serde_json::from_value(operations).unwrap()).unwrap_err();
        assert!(why.starts_with("operation '/2' failed at path '/a'"), "{why}");
        assert_eq!(value, json!({"a": 1}));
    }
}
