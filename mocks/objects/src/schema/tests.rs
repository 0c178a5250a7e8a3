use proptest::prelude::*;
use serde_json::json;

use super::*;

mod rules;

fn schema(root: &Value) -> Schema {
    read(&json!({"type": "object", "properties": {"spec": root}}), "schema").unwrap()
}

fn causes(root: &Value, spec: &Value) -> Vec<String> {
    let found = schema(root).check(&json!({"spec": spec}), None);
    found.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

#[test]
fn what_is_wrong_is_said_in_the_words_of_the_real_server() {
    let in_body = |value: &str, why: &str| format!("spec: Invalid value: {value}: spec in body {why}");
    let not_text = |is: &str| in_body(&format!("\"{is}\""), &format!("must be of type string: \"{is}\""));
    let list = |items: Value| json!({"type": "array", "maxItems": 2, "items": items});
    let cases = [
        (json!({"type": "string"}), json!(1), not_text("integer")),
        (json!({"type": "string"}), json!(null), not_text("null")),
        (json!({"type": "object", "required": ["a"]}), json!({}), "spec.a: Required value".to_owned()),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            "spec: Unsupported value: \"c\": supported values: \"a\", \"b\"".to_owned(),
        ),
        (json!({"type": "string", "pattern": "^a+$"}), json!("b"), in_body("\"b\"", "should match '^a+$'")),
        (json!({"type": "integer", "minimum": 1}), json!(0), in_body("0", "should be greater than or equal to 1")),
        (
            json!({"type": "number", "maximum": 2, "exclusiveMaximum": true}),
            json!(2),
            in_body("2", "should be less than 2"),
        ),
        (json!({"type": "string", "minLength": 2}), json!("ä"), in_body("\"ä\"", "should be at least 2 chars long")),
        (
            json!({"type": "string", "maxLength": 1}),
            json!("ab"),
            "spec: Too long: may not be more than 1 bytes".to_owned(),
        ),
        (list(json!({"type": "integer"})), json!([1, 2, 3]), "spec: Too many: 3: must have at most 2 items".to_owned()),
        (
            list(json!({"type": "object", "properties": {"n": {"type": "boolean"}}})),
            json!([{}, {"n": "x"}]),
            "spec[1].n: Invalid value: \"string\": spec[1].n in body must be of type boolean: \"string\"".to_owned(),
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"k": "v"}),
            "spec.k: Invalid value: \"string\": spec.k in body must be of type integer: \"string\"".to_owned(),
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("noon"),
            in_body("\"noon\"", "must be of type date-time: \"noon\""),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!(["a", "a"]),
            "spec[1]: Duplicate value: \"a\"".to_owned(),
        ),
        (
            json!({"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]}),
            json!(3),
            in_body("3", "must validate one and only one schema (oneOf)"),
        ),
        (json!({"type": "integer", "multipleOf": 2}), json!(3), in_body("3", "should be a multiple of 2")),
    ];
    for (schema, value, wanted) in cases {
        assert_eq!(causes(&schema, &value), [wanted], "{schema}");
    }
    let fine = [
        (json!({"type": "string", "nullable": true}), json!(null)),
        (json!({"x-kubernetes-int-or-string": true}), json!("25%")),
        (json!({"x-kubernetes-int-or-string": true}), json!(3)),
        (json!({"type": "integer"}), json!(1.0)),
        (json!({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}), json!(0)),
    ];
    for (schema, value) in fine {
        assert_eq!(causes(&schema, &value), Vec::<String>::new(), "{schema}");
    }
}

#[test]
fn what_was_wrong_before_may_stay() {
    let number = json!({"type": "integer", "minimum": 1});
    let schema = schema(&json!({"type": "object", "properties": {"a": number, "b": number}}));
    let (old, new) = (json!({"spec": {"a": 0, "b": 0}}), json!({"spec": {"a": 0, "b": -1}}));
    let causes = schema.check(&new, Some(&old));
    assert_eq!(causes.iter().map(|cause| cause.field.as_str()).collect::<Vec<_>>(), ["spec.b"]);
}

/// In an update, list items are matched with old items only by keys. In a list without keys, all items count as new
/// after any change.
#[test]
fn a_list_without_keys_is_checked_as_a_whole() {
    let item =
        json!({"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer", "minimum": 1}}});
    let wrong = |more: &Value| {
        let mut list = json!({"type": "array", "items": item});
        list.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (old, new) = (json!([{"k": "a", "n": 0}]), json!([{"k": "a", "n": 0}, {"k": "b", "n": 1}]));
        let causes = schema(&list).check(&json!({"spec": new}), Some(&json!({"spec": old})));
        causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
    };
    assert_eq!(wrong(&json!({})), ["spec[0].n"]);
    let keyed = json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]});
    assert_eq!(wrong(&keyed), Vec::<String>::new());
}

#[test]
fn unknown_fields_go_and_defaults_come() {
    let schema = schema(&json!({"type": "object", "properties": {
        "known": {"type": "string"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "inner": {"type": "object", "properties": {}},
        }},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "n": {"type": "integer", "default": 7},
        }}},
        "nested": {"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 3}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {
            "x": {"type": "string", "default": "d"},
        }}},
    }}));
    let mut object = json!({
        "apiVersion": "a/v1", "kind": "K", "metadata": {"anything": 1}, "status": {},
        "spec": {"known": "a", "typo": 1, "free": {"more": 1, "inner": {"gone": 1}}, "map": {"k": {"z": 1}},
                 "list": [{}, {"y": 1}]},
    });
    let mut unknown = schema.prune(&mut object);
    unknown.sort();
    assert_eq!(unknown, ["spec.free.inner.gone", "spec.list[1].y", "spec.map.k.z", "spec.typo", "status"]);
    schema.fill(&mut object).unwrap();
    let wanted = json!({"known": "a", "free": {"more": 1, "inner": {}}, "map": {"k": {"n": 7}},
                        "nested": {"size": 3}, "list": [{"x": "d"}, {"x": "d"}]});
    assert_eq!(object["spec"], wanted);
    assert_eq!(object["metadata"], json!({"anything": 1}));
}

/// A field that is `null` but not nullable counts as absent, because typed clients send `null` for an empty map. A list
/// item that is `null` counts as present.
#[test]
fn a_null_that_may_not_be_is_absent() {
    let text = json!({"type": "string"});
    let raw = json!({"type": "object", "properties": {
        "gone": {"type": "object", "additionalProperties": text}, "may": {"type": "string", "nullable": true},
        "default": {"type": "integer", "default": 3}, "list": {"type": "array", "items": text},
        "map": {"type": "object", "additionalProperties": text},
    }});
    let schema = read(&raw, "schema").unwrap();
    let mut object =
        json!({"gone": null, "may": null, "default": null, "list": ["a", null], "map": {"a": null, "b": "c"}});
    schema.fill(&mut object).unwrap();
    assert_eq!(object, json!({"may": null, "default": 3, "list": ["a", null], "map": {"b": "c"}}));
}

#[test]
fn a_schema_that_is_not_structural_is_refused() {
    let fields = |raw: &Value| -> Vec<String> {
        read(raw, "schema").unwrap_err().into_iter().map(|cause| cause.field).collect()
    };
    assert_eq!(fields(&json!({"properties": {}})), ["schema.type"]);
    let raw = json!({"type": "object", "properties": {
        "a": {}, "b": {"type": "array"}, "c": {"type": "object", "properties": {"d": {"type": "array"}}},
    }});
    let wanted = ["properties[a].type", "properties[b].items", "properties[c].properties[d].items"];
    assert_eq!(fields(&raw), wanted.map(|end| format!("schema.{end}")));
    for wrong in [json!({"type": "text"}), json!({"type": "string", "pattern": "("})] {
        assert!(read(&json!({"type": "object", "properties": {"a": wrong}}), "schema").is_err());
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn json_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "default": "x"})),
        Just(json!({"type": "integer", "minimum": 0})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.clone().prop_map(|like| json!({"type": "object", "additionalProperties": like})),
            prop::collection::btree_map("[a-d]", inner, 0..3)
                .prop_map(|properties| json!({"type": "object", "properties": properties})),
        ]
    })
}

/// Filling in defaults stops if the defaults are too large, because every item of a list may have its own default.
#[test]
fn defaults_stop_where_an_object_would_be_too_large() {
    let of_items = |bytes: usize| {
        schema(&json!({"type": "object", "properties": {"items": {"type": "array", "items": {
            "type": "object", "properties": {"text": {"type": "string", "default": "x".repeat(bytes)}}}}}}))
    };
    let mut many = json!({"spec": {"items": vec![json!({}); 5000]}});
    assert_eq!(of_items(100_000).fill(&mut many), Err(Overgrown));
    assert!(many.to_string().len() < 2 * OBJECT_MAX_BYTES, "it went on filling");
    let mut few = json!({"spec": {"items": vec![json!({}); 10]}});
    of_items(100_000).fill(&mut few).unwrap();
    assert!(few.to_string().len() > 1_000_000);
}

proptest! {
    /// Pruning and filling in defaults twice gives the same result as once, for any object and schema.
    #[test]
    fn pruning_and_defaults_are_idempotent(raw in json_schema(), spec in json_value()) {
        let schema = schema(&raw);
        let mut once = json!({"kind": "K", "spec": spec});
        schema.prune(&mut once);
        schema.fill(&mut once).unwrap();
        let mut twice = once.clone();
        prop_assert_eq!(schema.prune(&mut twice), Vec::<String>::new());
        schema.fill(&mut twice).unwrap();
        prop_assert_eq!(&once, &twice);
        prop_assert_eq!(schema.check(&once, Some(&once)), Vec::new());
        schema.check(&once, None);
    }
}
