//! The objects that an observation creates: a sample of each kind or objects generated from its
//! `CustomResourceDefinition`, and the objects that samples need. Does no I/O.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Crd, Found, sample};

/// Maximum number of further objects created because samples may need them.
const COMPANY_MAX: usize = 60;
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
        let made = loadgen::churn::variants(&crd.definition, &crd.version).into_iter().map(|object| (None, object));
        samples.chain(made).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

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
