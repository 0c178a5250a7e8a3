//! KRM functions: take a `ResourceList` and return it with pinned images and `results`
//! (<https://github.com/kubernetes-sigs/kustomize/blob/master/cmd/config/docs/api-conventions/functions-spec.md>).
//!
//! This module owns the format of `results`, and the keys of `functionConfig`.

use serde_json::{Value, json};
use service_core::role::Review;

use crate::edit::{self, Edit};
use crate::objects::{Finding, Judged, Severity, Wanted, judge, objects};
use crate::paths::{Path, PathError};
use crate::yaml::{self, Document, documents};

/// Why a `ResourceList` cannot be processed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the input is no YAML: {0}")]
    Yaml(#[from] yaml::Error),
    #[error(
        "the input is no ResourceList: its `kind` is {0}; a KRM function is given one by kpt or kustomize on its standard input"
    )]
    Kind(String),
    #[error("functionConfig: {0}")]
    Path(#[from] PathError),
}

#[derive(Debug)]
pub struct Done {
    pub text: String,
    pub findings: Vec<Finding>,
}

impl Done {
    /// Whether the function failed, because an image may not run or was not found.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

pub async fn run(review: &dyn Review, text: &str, mut wanted: Wanted) -> Result<Done, Error> {
    let documents = documents(text)?;
    let Some(document) = documents.first() else { return Err(Error::Kind("missing".into())) };
    let root = document.root();
    match document.text_of(root, "kind") {
        Some("ResourceList") => {}
        other => return Err(Error::Kind(other.map_or_else(|| "missing".into(), |kind| format!("`{kind}`")))),
    }
    if let Some(config) = document.get(root, "functionConfig") {
        wanted = with_config(document, config, wanted)?;
    }
    let (mut edits, mut findings, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for object in objects(document) {
        let Judged { edits: changed, findings: said, .. } = judge(review, (text, document), &object, &wanted).await?;
        edits.extend(changed);
        results.extend(said.iter().map(|finding| result(document, finding)));
        findings.extend(said);
    }
    edits.extend(results_edit(text, document, &results));
    Ok(Done { text: edit::apply(text, edits), findings })
}

/// Reads the options `paths` (a list, or a text with commas or lines) and `namespace`, from `data` of a `ConfigMap` or
/// from `spec` of any other kind.
fn with_config(document: &Document, config: yaml::Id, mut wanted: Wanted) -> Result<Wanted, Error> {
    let Some(keys) = ["data", "spec"].iter().find_map(|key| document.get(config, key)) else { return Ok(wanted) };
    if let Some(namespace) = document.text_of(keys, "namespace") {
        namespace.clone_into(&mut wanted.namespace);
    }
    if let Some(paths) = document.get(keys, "paths") {
        let listed = document.items(paths).iter().filter_map(|path| document.text(*path));
        let written = document.text(paths).unwrap_or_default().split([',', '\n']);
        for path in listed.chain(written).map(str::trim).filter(|path| !path.is_empty()) {
            wanted.paths.push(path.parse::<Path>()?);
        }
    }
    Ok(wanted)
}

fn result(document: &Document, finding: &Finding) -> Value {
    let object = &finding.object;
    let mut reference = json!({"apiVersion": object.api_version, "kind": object.kind, "name": object.name});
    if let Some(namespace) = &object.namespace {
        reference["namespace"] = namespace.as_str().into();
    }
    let mut result = json!({"message": finding.message, "severity": finding.severity.name(), "resourceRef": reference});
    if let Some(pointer) = &finding.field {
        let mut field = json!({"path": dotted(pointer)});
        for (key, value) in [("currentValue", &finding.current), ("proposedValue", &finding.proposed)] {
            if let Some(value) = value {
                field[key] = value.as_str().into();
            }
        }
        result["field"] = field;
    }
    let annotations = document.get(object.id, "metadata").and_then(|one| document.get(one, "annotations"));
    let named = |keys: [&str; 2]| keys.iter().find_map(|key| document.text_of(annotations?, key));
    if let Some(path) = named(["internal.config.kubernetes.io/path", "config.kubernetes.io/path"]) {
        let index = named(["internal.config.kubernetes.io/index", "config.kubernetes.io/index"]);
        result["file"] = json!({"path": path, "index": index.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)});
    }
    result
}

/// Turns `/spec/containers/0/image` into `spec.containers[0].image`.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.extend(["[", &part, "]"]);
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(&part);
        }
    }
    path
}

/// The edit that appends `results` to the results in the `ResourceList`.
fn results_edit(text: &str, document: &Document, results: &[Value]) -> Option<Edit> {
    if results.is_empty() {
        return None;
    }
    let listed = |indent: &str| results.iter().map(|one| format!("{indent}- {one}\n")).collect::<Vec<_>>().concat();
    let flow = || results.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
    let root = document.node(document.root());
    let insert = |at: usize, text: String| Edit { range: at..at, text };
    let edit = match document.get(document.root(), "results") {
        // Before the existing ones, which stay as written.
        Some(list) if text[document.node(list).range.start..].starts_with('[') => {
            let comma = if document.items(list).is_empty() { "" } else { ", " };
            insert(document.node(list).range.start + 1, flow() + comma)
        }
        Some(list) => {
            let first = document.items(list).first().map_or(root.range.start, |item| document.node(*item).range.start);
            let line = text[..first].rfind('\n').map_or(0, |end| end + 1);
            let indent = text[line..].len() - text[line..].trim_start_matches(' ').len();
            insert(line, listed(&" ".repeat(indent)))
        }
        None if text[root.range.clone()].starts_with('{') => {
            insert(root.range.start + 1, format!("\"results\": [{}], ", flow()))
        }
        None => {
            let at = text.trim_end().trim_end_matches("...").trim_end().len();
            insert(at, format!("\nresults:\n{}", listed("").trim_end()))
        }
    };
    Some(edit)
}

#[cfg(test)]
mod tests;
