//! A door for the fuzz targets in `mocks/kube/fuzz`: what reads outside data, called with bytes.
//!
//! Owns turning bytes into inputs and the properties that must hold for all of them. Compiled with the feature `fuzz` only.
//! Every function panics when a property is broken, and on nothing else.

mod shape;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use jiff::Timestamp;
use mock_cel::{BUDGET, Input, Program};
use mock_objects::catalogue::{Catalogue, Resource, definition as definition_of};
use mock_objects::patch::{self, Manager, Patch};
use mock_objects::selector::{Selector, from_label_selector, labels_match, parse_labels};
use mock_objects::{protobuf, schema};
use serde_json::{Value, json};

use super::path::{Query, Target, pairs};
use shape::Shape;

const KINDS: &[&str] = &[
    "pods",
    "deployments.apps",
    "services",
    "configmaps",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
];

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::builtin);
/// A custom resource with lists of all types, in the words of `shape`.
static CUSTOM: LazyLock<Arc<Resource>> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "name": text, "key": {"type": "string", "default": "a"},
    }});
    let keyed = |keys: &[&str]| json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys});
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "a": keyed(&["name"]), "b": keyed(&["name", "key"]),
        "values": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "labels": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
    }});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
    }});
    Arc::new(definition_of(&definition).unwrap_or_else(|_| panic!("the definition is right")))
});

fn resource(shape: &mut Shape<'_>) -> Arc<Resource> {
    match KINDS.get(usize::from(shape.byte()) % (KINDS.len() + 1)) {
        Some(name) => CATALOGUE.by_full_name(name).expect("the kinds are built in").clone(),
        None => CUSTOM.clone(),
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Paths and query strings: they end with a value or a refusal.
pub fn query(bytes: &[u8]) {
    let text = text(bytes);
    let (path, query) = text.split_once('?').unwrap_or((&text, &text));
    let _ = Target::parse(path);
    let _ = Query::parse(query);
    // A decoded pair that is encoded again means the same.
    for (key, value) in pairs(query) {
        let encode =
            |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
        let again = pairs(&format!("{}={}", encode(&key), encode(&value)));
        assert_eq!(again, [(key, value)], "{query}");
    }
}

/// Selectors: a requirement and its contrary never both match.
pub fn selectors(bytes: &[u8]) {
    let text = text(bytes);
    let (labels, fields) = text.split_once('\n').unwrap_or((&text, &text));
    for kind in KINDS {
        let resource = CATALOGUE.by_full_name(kind).expect("the kinds are built in");
        let _ = Selector::parse(Some(labels), Some(fields), resource);
    }
    if let Ok(requirements) = parse_labels(labels) {
        let present = |key: &str| (key.len().is_multiple_of(2)).then_some("a");
        let matches = labels_match(&requirements, present);
        assert_eq!(matches, labels_match(&requirements, present), "matching is a function");
        if let ([_], false) = (&requirements[..], labels.trim_start().starts_with('!')) {
            let contrary = format!("!{}", labels.trim_start());
            if let Ok(contrary) = parse_labels(&contrary)
                && contrary.len() == 1
            {
                assert!(!(matches && labels_match(&contrary, present)), "{labels}");
            }
        }
    }
    let mut shape = Shape::new(bytes);
    let _ = from_label_selector(&shape.value());
}

/// JSON patches: what is refused changes nothing that is shown, and a list of tests changes nothing.
pub fn json_patch(bytes: &[u8]) {
    let mut shape = Shape::new(bytes);
    let (resource, original, operations) = (resource(&mut shape), shape.object(), shape.operations());
    let body = Bytes::from(operations.to_string());
    let Ok((patch, _)) = Patch::decode("application/json-patch+json", &body, true) else { return };
    let mut value = original.clone();
    let done = patch.apply(&mut value, &resource);
    let only_tests = operations.as_array().is_some_and(|list| list.iter().all(|one| one["op"] == "test"));
    if done.is_ok() && only_tests {
        assert_eq!(value, original);
    }
}

/// Merge patches: applying one twice is applying it once (RFC 7396, the algorithm keeps no state).
pub fn merge_patch(bytes: &[u8]) {
    let mut shape = Shape::new(bytes);
    let (resource, mut value, patch) = (resource(&mut shape), shape.object(), shape.object());
    let body = Bytes::from(patch.to_string());
    let Ok((patch, _)) = Patch::decode("application/merge-patch+json", &body, true) else { return };
    if patch.apply(&mut value, &resource).is_ok() {
        let once = value.clone();
        patch.apply(&mut value, &resource).expect("it applied before");
        assert_eq!(value, once);
    }
}

/// Strategic merge patches: they end with an object or a refusal, whatever the directives.
pub fn strategic_patch(bytes: &[u8]) {
    let mut shape = Shape::new(bytes);
    let (resource, mut value, patch) = (resource(&mut shape), shape.object(), shape.object());
    let body = Bytes::from(patch.to_string());
    let Ok((patch, _)) = Patch::decode("application/strategic-merge-patch+json", &body, true) else { return };
    let _ = patch.apply(&mut value, &resource);
}

/// Server-side apply: applying the same again changes nothing, and another manager that forces its way still leaves
/// `managedFields` that can be read.
pub fn server_side(bytes: &[u8]) {
    let mut shape = Shape::new(bytes);
    let resource = resource(&mut shape);
    let (mut value, first, second) = (shape.object(), shape.object(), shape.object());
    let by = |name: &'static str, force: bool| Manager {
        name,
        force,
        api_version: "v1",
        subresource: "",
        now: Timestamp::UNIX_EPOCH,
    };
    value["metadata"] = serde_json::json!({"name": "a", "uid": "u"});
    let _ = patch::server_side(&mut value, &first, &by("one", true), &resource);
    let _ = patch::server_side(&mut value, &second, &by("two", shape.byte().is_multiple_of(2)), &resource);
    if patch::server_side(&mut value, &second, &by("two", true), &resource).is_ok() {
        let once = value.clone();
        patch::server_side(&mut value, &second, &by("two", false), &resource).expect("nobody else owns it any more");
        assert_eq!(value, once);
    }
    let before = value.clone();
    let mut written = shape.object();
    written["metadata"] = value["metadata"].clone();
    patch::track(&mut written, Some(&before), &by("three", false), &resource);
}

/// Conditions of webhooks: they are refused, or they end within their budget.
pub fn conditions(bytes: &[u8]) {
    let text = text(bytes);
    let (source, rest) = text.split_once('\0').unwrap_or((&text, ""));
    let Ok(program) = Program::compile(source) else { return };
    let mut shape = Shape::new(rest.as_bytes());
    let (object, old_object, request) = (shape.value(), shape.value(), shape.object());
    let input = Input { object: &object, old_object: &old_object, request: &request };
    let mut budget = BUDGET;
    let first = program.run(&input, &mut budget);
    assert_eq!(program.run(&input, &mut BUDGET.clone()), first, "running is a function");
}

/// Rules of custom resources: they are refused, or they end within their budget and say the same twice. An object that stays as it
/// is may break only those that look back.
pub fn rules(bytes: &[u8]) {
    let text = text(bytes);
    let (source, rest) = text.split_once('\0').unwrap_or((&text, ""));
    let (message, rest) = rest.split_once('\0').unwrap_or(("", rest));
    let mut shape = Shape::new(rest.as_bytes());
    let mut raw = shape.schema();
    raw["properties"]["spec"] = shape.schema();
    let mut rule = serde_json::json!({"rule": source, "messageExpression": message});
    for (bit, key, value) in [(1, "optionalOldSelf", Value::from(true)), (2, "fieldPath", Value::from(".a"))] {
        if shape.byte() & bit != 0 {
            rule[key] = value;
        }
    }
    raw["properties"]["spec"]["x-kubernetes-validations"] = serde_json::json!([rule]);
    let Ok(schema) = schema::read(&raw, "schema") else { return };
    let (value, old) = (shape.object(), shape.object());
    let first = schema.judge(&value, Some(&old));
    assert_eq!(schema.judge(&value, Some(&old)), first, "{raw}");
    schema.judge(&value, None);
    if !source.contains("oldSelf") && message.is_empty() {
        let errors = schema.judge(&value, Some(&value)).causes;
        assert!(errors.iter().all(|cause| !cause.message.contains("failed rule")), "{raw}");
    }
}

/// JSON bodies: what is read twice is what the library reads, and nothing more is refused.
pub fn json_bodies(bytes: &[u8]) {
    let library: Option<Value> = serde_json::from_slice(bytes).ok();
    assert_eq!(mock_objects::json::read(bytes).ok().map(|(value, _)| value), library);
}

/// Protobuf bodies, with and without their envelope.
pub fn protobuf(bytes: &[u8]) {
    let _ = protobuf::decode(bytes);
    let Some((kind, raw)) = bytes.split_first() else { return };
    let kinds = ["Pod", "Deployment", "Event", "Service", "Job", "Ingress", "DeleteOptions", "NetworkPolicy"];
    let kind = kinds[usize::from(*kind) % kinds.len()];
    let length = |bytes: &[u8]| -> Vec<u8> {
        let (mut rest, mut out) = (bytes.len(), Vec::new());
        while rest >= 0x80 {
            out.push(u8::try_from(rest & 0x7f).expect("seven bits") | 0x80);
            rest >>= 7;
        }
        out.push(u8::try_from(rest).expect("seven bits"));
        out
    };
    let field = |number: u8, content: &[u8]| [&[number << 3 | 2][..], &length(content), content].concat();
    let meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    let _ = protobuf::decode(&[b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat());
}

/// Schemas of custom resources: a second pruning finds nothing, and filling in defaults twice is filling in once.
pub fn schemas(bytes: &[u8]) {
    let mut shape = Shape::new(bytes);
    let raw = shape.schema();
    let Ok(schema) = schema::read(&raw, "schema") else { return };
    let mut value = shape.object();
    schema.prune(&mut value);
    assert_eq!(schema.prune(&mut value), Vec::<String>::new(), "{raw}");
    // What is refused is thrown away.
    let Ok(()) = schema.fill(&mut value) else { return };
    let once = value.clone();
    assert_eq!(schema.fill(&mut value), Ok(()));
    assert_eq!(value, once, "{raw}");
    let old: Value = shape.object();
    let _ = schema.check(&value, Some(&old));
    assert!(schema.check(&value, Some(&value)).is_empty(), "what did not change is not checked again");
}
