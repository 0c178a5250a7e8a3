//! A sample of a custom resource as a template of churn: the sample's own values, of which one changes with each write.
//!
//! Owns the choice of the changing value. A project's webhook accepts the project's samples, but may refuse objects
//! that are generated from the schema. Does no I/O.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Crd;

/// Maximum depth of a value in a sample that may change with each write. Values in lists stay as in the sample.
const DEPTH: usize = 4;
/// Maximum size of a template. A larger template would make the scenario unreadable.
const BYTES_MAX: usize = 16 << 10;
/// Maximum difference between a changed number and the number in the sample.
const REACH: i64 = 3;
/// Words in names of fields whose values do not change, because they refer to an image, another object or an address.
const MEANT: &[&str] = &[
    "image", "name", "ref", "class", "url", "uri", "host", "version", "secret", "path", "type", "mode", "policy", "id",
    "key", "schedule", "address",
];

/// An object that a project shows to its users.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) file: PathBuf,
    pub(super) group: String,
    pub(super) kind: String,
    object: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    pub(crate) file: PathBuf,
    /// The object with `kind`, without name, namespace and status.
    pub(crate) object: Value,
    /// The path of the changing value; `None` if no value is suitable.
    pub(crate) varies: Option<String>,
}

pub(super) fn is_sample(file: &Path) -> bool {
    file.parent().into_iter().flat_map(Path::components).any(|part| {
        let part = part.as_os_str();
        ["samples", "sample", "examples", "example"].iter().any(|name| part == *name)
    })
}

/// The sample in an object of a file; `None` if the object is no sample or has no values.
pub(super) fn read(file: &Path, object: &Value) -> Option<Sample> {
    let api_version = object["apiVersion"].as_str()?;
    let (group, _) = api_version.split_once('/')?;
    let has_spec = object["spec"].as_object().is_some_and(|spec| !spec.is_empty());
    has_spec.then(|| Sample {
        file: file.to_owned(),
        group: group.to_owned(),
        kind: object["kind"].as_str().unwrap_or_default().to_owned(),
        object: object.clone(),
    })
}

/// Whether an object has all fields that are needed to apply it.
pub(super) fn is_whole(object: &Value) -> bool {
    ["/apiVersion", "/kind", "/metadata/name"].iter().all(|at| object.pointer(at).is_some_and(Value::is_string))
}

impl Sample {
    pub(super) fn object(&self) -> &Value {
        &self.object
    }
}

/// The samples of a kind as templates without a changing value.
pub(super) fn plain_templates(samples: &[Sample], crd: &Crd) -> Vec<(PathBuf, Value)> {
    let version = crd.api_version();
    let of = |sample: &&Sample| {
        sample.group == crd.group && sample.kind == crd.kind && sample.object["apiVersion"] == version.as_str()
    };
    // If the schema has no field of the sample, an API server would drop all fields.
    let is_known = |spec: &serde_json::Map<String, Value>| spec.keys().any(|key| is_in(&crd.spec, key));
    let is_fine = |sample: &&Sample| {
        sample.object.to_string().len() <= BYTES_MAX && sample.object["spec"].as_object().is_some_and(is_known)
    };
    let template = |sample: &Sample| {
        let mut object = plain(&sample.object);
        if let Some(parts) = object.as_object_mut() {
            parts.retain(|key, _| !["apiVersion", "metadata", "status"].contains(&key.as_str()));
        }
        (sample.file.clone(), object)
    };
    samples.iter().filter(of).filter(is_fine).map(template).collect()
}

/// The paths in a spec that may change, the best first, with their placeholders.
pub(super) fn places(spec: &Value, crd: &Crd) -> Vec<(String, String)> {
    let mut places = Vec::new();
    places_in(spec, &crd.spec, "/spec", 0, &mut places);
    places.sort_by_key(|(rank, _, _)| *rank);
    places.into_iter().map(|(_, pointer, placeholder)| (pointer, placeholder)).collect()
}

pub(super) fn template(samples: &[Sample], crd: &Crd) -> Option<Template> {
    let (file, mut object) = plain_templates(samples, crd).into_iter().next()?;
    let varies = places(&object["spec"], crd).into_iter().next().and_then(|(pointer, placeholder)| {
        *object.pointer_mut(&pointer)? = json!(placeholder);
        Some(pointer)
    });
    Some(Template { file, object, varies })
}

/// The value with escaped texts, so that no text is replaced as a placeholder.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(text.replace("${", "$${")),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(parts) => Value::Object(parts.iter().map(|(key, part)| (key.clone(), plain(part))).collect()),
        other => other.clone(),
    }
}

/// Collects the paths that may change, with their placeholders and a rank: lower ranks are better.
fn places_in(value: &Value, schema: &Value, at: &str, depth: usize, out: &mut Vec<(u32, String, String)>) {
    // A rule that compares with the old value may forbid a change.
    if depth > DEPTH || schema["x-kubernetes-validations"].to_string().contains("oldSelf") {
        return;
    }
    for (key, part) in value.as_object().into_iter().flatten().filter(|(key, _)| is_in(schema, key)) {
        let below = &schema["properties"][key];
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        if part.is_object() {
            places_in(part, below, &pointer, depth + 1, out);
        } else if let Some((rank, placeholder)) = changed(key, part, below) {
            out.push((rank + u32::try_from(depth).unwrap_or(0), pointer, placeholder));
        }
    }
}

/// Whether the schema has this field; an API server drops fields that the schema does not have.
fn is_in(schema: &Value, key: &str) -> bool {
    schema["properties"].get(key).is_some() || schema["x-kubernetes-preserve-unknown-fields"] == true
}

/// The rank of numbers as changing values: the best rank. A deeper path has a worse rank, because users mostly change
/// values at the top of a spec.
const NUMBER: u32 = 0;
const TEXT: u32 = 10;
const TRUTH: u32 = 20;

fn changed(key: &str, value: &Value, schema: &Value) -> Option<(u32, String)> {
    if !schema["x-kubernetes-validations"].is_null() || !schema["enum"].is_null() {
        return None;
    }
    match value {
        Value::Number(number) => {
            let is_whole = schema["type"] == "integer" || schema["type"].is_null();
            let (number, is_whole) = (number.as_i64()?, is_whole && schema["multipleOf"].is_null());
            let bound = |key: &str, exclusive: &str, inside: i64| {
                let bound = schema[key].as_i64()?;
                Some(if schema[exclusive] == true { bound + inside } else { bound })
            };
            let (least, most) = (bound("minimum", "exclusiveMinimum", 1), bound("maximum", "exclusiveMaximum", -1));
            let high = most.unwrap_or(i64::MAX).min(number.saturating_add(REACH));
            let low =
                if high > number { number } else { least.unwrap_or(i64::MIN).max(number.saturating_sub(REACH)).max(0) };
            (is_whole && low < high && number >= 0).then(|| (NUMBER, format!("${{random {low}..{high}}}")))
        }
        Value::String(text) => {
            let is_free = ["pattern", "format", "maxLength"].iter().all(|key| schema[*key].is_null());
            let lower = key.to_lowercase();
            let is_word = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || " -_.,!".contains(c));
            let is_meant = MEANT.iter().any(|word| lower.contains(word));
            (is_free && is_word && !is_meant).then(|| (TEXT, format!("{text}-${{random 1..9}}")))
        }
        // A paused controller rightly does nothing, so such a field must not change.
        Value::Bool(_) if !["paus", "suspend"].iter().any(|word| key.to_lowercase().contains(word)) => {
            Some((TRUTH, "${one of [true, false]}".to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(spec: Value) -> Crd {
        Crd {
            group: "shop.example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Basket".to_owned(),
            spec,
            ..Crd::default()
        }
    }

    fn of(spec: &Value, schema: Value) -> Template {
        let object = json!({
            "apiVersion": "shop.example.com/v1", "kind": "Basket", "spec": spec, "status": {"a": 1},
            "metadata": {"name": "sample", "namespace": "here", "labels": {"a": "b"}},
        });
        let sample = read(Path::new("config/samples/a.yaml"), &object).unwrap();
        template(&[sample], &crd(schema)).unwrap()
    }

    #[test]
    fn a_number_is_what_changes_first_and_within_its_bounds() {
        let spec = json!({"image": "nginx:1", "size": 2, "note": "hello ${i}", "deep": {"weight": 1}});
        let made = of(
            &spec,
            json!({"properties": {"size": {"type": "integer", "minimum": 1, "maximum": 4}, "note": {}, "image": {}}}),
        );
        assert_eq!(made.varies.as_deref(), Some("/spec/size"));
        let expected =
            json!({"image": "nginx:1", "size": "${random 2..4}", "note": "hello $${i}", "deep": {"weight": 1}});
        assert_eq!(made.object, json!({"kind": "Basket", "spec": expected}));
        let full =
            of(&json!({"size": 4}), json!({"properties": {"size": {"type": "integer", "minimum": 1, "maximum": 4}}}));
        assert_eq!(full.object["spec"]["size"], "${random 1..4}");
    }

    #[test]
    fn what_means_something_elsewhere_or_must_stay_stays() {
        let spec = json!({"size": 3, "image": "nginx", "className": "fast", "kind": "a"});
        let ruled = json!({"properties": {
            "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
            "kind": {"enum": ["a", "b"]}, "image": {"type": "string"}, "className": {"type": "string"},
        }});
        assert_eq!(of(&spec, ruled).varies, None);
        let any = || json!({"x-kubernetes-preserve-unknown-fields": true});
        let on = of(&json!({"image": "nginx", "enabled": true}), any());
        assert_eq!(on.object["spec"]["enabled"], "${one of [true, false]}");
        let text = of(&json!({"greeting": "hello you", "enabled": true}), any());
        assert_eq!(text.object["spec"]["greeting"], "hello you-${random 1..9}");
    }

    #[test]
    fn a_sample_that_says_nothing_is_none() {
        assert!(read(Path::new("a"), &json!({"apiVersion": "a/v1", "kind": "A", "spec": null})).is_none());
        assert!(read(Path::new("a"), &json!({"apiVersion": "v1", "kind": "A", "spec": {"a": 1}})).is_none());
        let object = json!({"apiVersion": "shop.example.com/v1", "kind": "Basket", "spec": {"foo": "bar"}});
        let sample = read(Path::new("config/samples/a.yaml"), &object).unwrap();
        assert_eq!(
            template(&[sample], &crd(json!({"properties": {"size": {}}}))),
            None,
            "nothing of it is in the schema"
        );
        assert!(is_sample(Path::new("config/samples/a.yaml")) && !is_sample(Path::new("samples.yaml")));
    }
}
