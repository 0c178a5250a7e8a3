//! The objects that an observation creates: a sample of each kind or objects generated from its
//! `CustomResourceDefinition`, and the objects that samples need. Does no I/O.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Crd, Found, sample};

/// Maximum number of further objects created because samples may need them.
const COMPANY_MAX: usize = 60;
/// The endings of the names of fields that refer to an object.
const REFERENCES: [&str; 4] = ["Ref", "Refs", "Reference", "References"];
/// Maximum number of fields of a sample that are changed.
const CHANGES_MAX: usize = 8;

#[derive(Debug, Clone)]
pub(crate) struct Trial {
    pub(crate) crd: Crd,
    /// Templates of the kind: samples first, then objects generated from the `CustomResourceDefinition`, those most
    /// likely accepted first. The first template that the API server accepts is used.
    pub(crate) templates: Vec<(Option<PathBuf>, Value)>,
}

impl Found {
    /// All kinds of the project. Kinds with a controller in the project come first.
    pub(crate) fn trials(&self) -> Vec<Trial> {
        self.crds.iter().map(|crd| Trial { crd: crd.clone(), templates: self.templates(crd) }).collect()
    }

    fn templates(&self, crd: &Crd) -> Vec<(Option<PathBuf>, Value)> {
        let samples =
            sample::plain_templates(&self.samples, crd).into_iter().map(|(file, object)| (Some(file), object));
        let made = loadgen::churn::variants(&crd.definition, &crd.version).into_iter();
        samples.chain(made.flat_map(|object| [self.referring(&object), object]).map(|object| (None, object))).collect()
    }

    /// A generated template whose references name a kind of the project, where the name of the field tells the kind:
    /// a program often ignores an object that refers to a kind that it does not know.
    pub(crate) fn referring(&self, template: &Value) -> Value {
        let mut object = template.clone();
        self.refer("", &mut object["spec"]);
        object
    }

    fn refer(&self, key: &str, value: &mut Value) {
        if let Some(crd) = self.crd_of(key)
            && value["kind"].is_string()
            && value["name"].is_string()
        {
            let parts =
                [("group", crd.group.clone()), ("apiGroup", crd.group.clone()), ("apiVersion", crd.api_version())];
            let parts: Vec<_> = parts.into_iter().filter(|(key, _)| value[*key].is_string()).collect();
            if !parts.is_empty() {
                value["kind"] = json!(crd.kind);
                for (key, text) in parts {
                    value[key] = json!(text);
                }
            }
            return;
        }
        match value {
            Value::Object(parts) => parts.iter_mut().for_each(|(key, part)| self.refer(key, part)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.refer(key, item)),
            _ => {}
        }
    }

    /// The kind to which a field such as `nodeClassRef` refers.
    fn crd_of(&self, key: &str) -> Option<&Crd> {
        let stem = REFERENCES.iter().find_map(|ending| key.strip_suffix(ending))?.to_lowercase();
        self.crds.iter().find(|crd| !stem.is_empty() && crd.kind.to_lowercase().ends_with(&stem))
    }

    /// All objects in the sample folders, because one sample may refer to another.
    pub(crate) fn company(&self) -> Vec<Value> {
        let samples = self.samples.iter().map(|sample| sample.object().clone());
        let all = self.companions.iter().map(|(_, object)| object.clone()).chain(samples);
        all.filter(|object| object["kind"] != "Namespace" && object["metadata"]["name"].is_string())
            .take(COMPANY_MAX)
            .collect()
    }

    /// The sample objects to which an object refers.
    pub(crate) fn named_by(&self, object: &Value) -> Vec<Value> {
        let spec = object["spec"].to_string();
        let is_named = |other: &Value| {
            let name = other["metadata"]["name"].as_str().unwrap_or_default();
            let is_same = other["kind"] == object["kind"];
            !is_same && !name.is_empty() && spec.contains(&format!("\"{name}\""))
        };
        self.company().into_iter().filter(is_named).map(bare).collect()
    }
}

/// An object without a namespace and without fields that a cluster adds.
fn bare(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| ["name", "labels", "annotations"].contains(&key.as_str()));
    }
    if let Some(parts) = object.as_object_mut() {
        parts.remove("status");
    }
    object
}

/// The fields of a template that a write may change, each with its placeholder.
pub(crate) fn changes(template: &Value, crd: &Crd) -> Vec<(String, Value)> {
    let mut made = Vec::new();
    placeholders(&template["spec"], "/spec", &mut made);
    if made.is_empty() {
        made = sample::places(&template["spec"], crd).into_iter().map(|(at, text)| (at, json!(text))).collect();
    }
    made.truncate(CHANGES_MAX);
    made
}

/// Collects the placeholders of a template that was generated from a `CustomResourceDefinition`.
fn placeholders(value: &Value, at: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(parts) => {
            for (key, part) in parts {
                placeholders(part, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::String(text) if ["${random ", "${text ", "${one of "].iter().any(|sign| text.contains(sign)) => {
            found.push((at.to_owned(), value.clone()));
        }
        _ => {}
    }
}

/// The template in which only fields with accepted changes vary.
pub(crate) fn varying(template: &Value, at: Option<(&str, &Value)>, fixed: &Value) -> Value {
    let mut object = template.clone();
    let mut made = Vec::new();
    placeholders(&object["spec"], "/spec", &mut made);
    for (pointer, _) in made {
        if at.is_none_or(|(kept, _)| kept != pointer)
            && let (Some(place), Some(value)) = (object.pointer_mut(&pointer), fixed.pointer(&pointer))
        {
            *place = value.clone();
        }
    }
    if let Some((pointer, placeholder)) = at
        && let Some(place) = object.pointer_mut(pointer)
    {
        *place = placeholder.clone();
    }
    object
}

/// The template in which each object names objects of its own. `written` are names of objects that the program wrote: if
/// two objects gave the same name, the program would write one object for both.
pub(crate) fn apart(template: &Value, written: &BTreeSet<String>) -> Value {
    let mut object = template.clone();
    set_apart(&mut object["spec"], written);
    object
}

fn set_apart(value: &mut Value, written: &BTreeSet<String>) {
    match value {
        Value::Object(parts) => parts.values_mut().for_each(|part| set_apart(part, written)),
        Value::Array(items) => items.iter_mut().for_each(|item| set_apart(item, written)),
        Value::String(text) if text.contains('-') => {
            let begins = |name: &String| {
                name.strip_prefix(text.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            if written.iter().any(begins) {
                // Short, because the names of Services and of labels have at most 63 characters.
                *text = format!("${{name}}-{}", text.rsplit('-').next().unwrap_or_default());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_a_kind_of_the_project() {
        let crd = |kind: &str, group: &str| Crd {
            kind: kind.to_owned(),
            group: group.to_owned(),
            version: "v1".to_owned(),
            ..Crd::default()
        };
        let found = Found {
            crds: vec![crd("Claim", "a.example.com"), crd("TestNodeClass", "b.example.com")],
            ..Found::default()
        };
        let reference = |key: &str, group: &str| json!({key: group, "kind": "${text 6}", "name": "x"});
        let template = json!({"kind": "Claim", "spec": {
            "nodeClassRef": reference("group", "${text 6}"),
            "list": [{"nodeClassReference": reference("apiVersion", "a")}],
            "otherRef": reference("group", "a"), "nodeClass": reference("group", "a"), "secretRef": {"name": "y"},
        }});
        let spec = &found.referring(&template)["spec"];
        assert_eq!(spec["nodeClassRef"], json!({"group": "b.example.com", "kind": "TestNodeClass", "name": "x"}));
        let deep = &spec["list"][0]["nodeClassReference"];
        assert_eq!((&deep["apiVersion"], &deep["kind"]), (&json!("b.example.com/v1"), &json!("TestNodeClass")));
        for key in ["otherRef", "nodeClass", "secretRef"] {
            assert_eq!(spec[key], template["spec"][key], "{key}");
        }
    }

    #[test]
    fn each_object_names_objects_of_its_own() {
        let template = json!({"kind": "Basket", "spec": {
            "serviceName": "example-basket-svc", "list": [{"scram": "my-scram"}], "size": "${random 1-3}", "secret": "my-password", "db": "admin"}});
        let written = ["example-basket-svc", "my-scram-credentials", "my-passwords", "admin-1"].map(str::to_owned);
        let spec = &apart(&template, &BTreeSet::from(written))["spec"];
        assert_eq!(
            (&spec["serviceName"], &spec["list"]),
            (&json!("${name}-svc"), &json!([{"scram": "${name}-scram"}]))
        );
        for key in ["size", "secret", "db"] {
            assert_eq!(spec[key], template["spec"][key], "{key}");
        }
    }

    #[test]
    fn only_what_was_taken_varies() {
        let template = json!({"kind": "Basket", "spec": {"size": "${random 1..3}", "note": "${text 3}", "deep": {"a/b": "${one of [1, 2]}"}}});
        let crd = Crd::default();
        let all: Vec<String> = changes(&template, &crd).into_iter().map(|(at, _)| at).collect();
        assert_eq!(all, ["/spec/deep/a~1b", "/spec/note", "/spec/size"]);
        let fixed = json!({"spec": {"size": 2, "note": "abc", "deep": {"a/b": 1}}});
        let one = varying(&template, Some(("/spec/size", &json!("${random 1..3}"))), &fixed);
        assert_eq!(one["spec"], json!({"size": "${random 1..3}", "note": "abc", "deep": {"a/b": 1}}));
        assert_eq!(varying(&template, None, &fixed)["spec"]["size"], 2);
        let sample = json!({"kind": "Basket", "spec": {"size": 2}});
        let with = varying(&sample, Some(("/spec/size", &json!("${random 2..5}"))), &sample);
        assert_eq!(with["spec"]["size"], "${random 2..5}");
    }
}
