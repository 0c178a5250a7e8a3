//! JSON merge patch (RFC 7386): null removes a field, objects merge, and other values replace.

use serde_json::{Map, Value};

/// Applies a merge patch to a value.
pub fn apply(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Some(object) = value.as_object_mut() else { return };
    for (key, change) in patch {
        if change.is_null() {
            object.remove(key);
        } else {
            apply(object.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (before, patch, after) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!(["a", "b"]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut value = before.clone();
            apply(&mut value, &patch);
            assert_eq!(value, after, "{before} with {patch}");
        }
    }

    proptest! {
        /// Applying a patch a second time changes nothing.
        #[test]
        fn twice_is_once(before in crate::patch::tests::json(), patch in crate::patch::tests::json()) {
            let mut once = before;
            apply(&mut once, &patch);
            let mut twice = once.clone();
            apply(&mut twice, &patch);
            prop_assert_eq!(once, twice);
        }
    }
}
