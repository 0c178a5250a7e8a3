//! Reads resources from `CustomResourceDefinition`s (apiextensions.k8s.io/v1).
//!
//! Owns reading and checking a definition; the module `conversion` reads the field `spec.conversion`.

use std::sync::Arc;

use mock_store::ResourceId;
use serde_json::Value;

use super::{Column, Conversion, Field, Resource, Scale, Served, conversion, version_priority};
use crate::kinds;
use crate::schema;
use crate::status::Cause;

/// Makes the resource of a definition, or returns the definition's errors.
pub fn definition(crd: &Value) -> Result<Resource, Vec<Cause>> {
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, plural, kind) = (text("/spec/group"), text("/spec/names/plural"), text("/spec/names/kind"));
    let mut causes = Vec::new();
    for (field, value) in [("spec.group", group), ("spec.names.plural", plural), ("spec.names.kind", kind)] {
        if value.is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    causes.extend(names(crd));
    let full_name = format!("{plural}.{group}");
    if text("/metadata/name") != full_name {
        let shown = format!("\"{}\"", text("/metadata/name"));
        causes.push(Cause::invalid("metadata.name", &shown, "must be spec.names.plural+\".\"+spec.group"));
    }
    let scope = text("/spec/scope");
    match scope {
        "Namespaced" | "Cluster" => {}
        "" => causes.push(Cause::required("spec.scope", "")),
        other => {
            let message = format!("Unsupported value: \"{other}\": supported values: \"Cluster\", \"Namespaced\"");
            causes.push(Cause { reason: "FieldValueNotSupported", field: "spec.scope".to_owned(), message });
        }
    }
    let versions: Vec<&Value> = crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten().collect();
    let stored: Vec<&str> = versions
        .iter()
        .filter(|version| version["storage"] == Value::Bool(true))
        .filter_map(|version| version["name"].as_str())
        .collect();
    if stored.len() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", "", why));
        if stored.is_empty() {
            causes.push(Cause::invalid("status.storedVersions", "[]", "must have at least one stored version"));
        }
    }
    if versions.iter().any(|version| version.pointer("/schema/openAPIV3Schema").is_none()) {
        causes.push(Cause::required("spec.versions[0].schema.openAPIV3Schema", "schemas are required"));
    }
    let mut read = Vec::new();
    // A schema that all versions share counts as one of the definition as a whole, also in errors.
    let schemas = || versions.iter().map(|version| &version["schema"]);
    let shared = schemas().all(|schema| Some(schema) == schemas().next());
    for (index, version) in versions.iter().enumerate() {
        let at = if shared { "spec.validation".to_owned() } else { format!("spec.versions[{index}].schema") };
        match served(group, version, &format!("{at}.openAPIV3Schema")) {
            Ok(served) => read.push(Served { deprecation: deprecation(crd, version, &versions), ..served }),
            Err(more) => causes.extend(more),
        }
    }
    causes.extend(conversion::check(crd));
    if !causes.is_empty() {
        return Err(causes);
    }
    let or = |given: &str, fallback: String| if given.is_empty() { fallback } else { given.to_owned() };
    let list = |pointer: &str| -> Vec<Arc<str>> {
        let items = crd.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(Arc::from).collect()
    };
    let conversion = Conversion::read(crd, &format!("{group}/{}", stored[0]));
    Ok(Resource {
        id: ResourceId(u32::MAX),
        group: group.into(),
        storage: stored[0].into(),
        versions: read,
        plural: plural.into(),
        singular: or(text("/spec/names/singular"), kind.to_lowercase()).into(),
        kind: kind.into(),
        list_kind: or(text("/spec/names/listKind"), format!("{kind}List")).into(),
        short_names: list("/spec/names/shortNames"),
        categories: list("/spec/names/categories"),
        namespaced: scope == "Namespaced",
        custom: true,
        full_name: full_name.into(),
        fields: fields(&versions),
        virtual_only: false,
        // An object written through another version lacks the defaults of the stored version.
        late_defaults: conversion.as_ref().is_some_and(|conversion| conversion.webhook.is_none()),
        conversion,
        moved: false,
        edition: 0,
        mirrors: false,
        published: None,
        rules: &kinds::CUSTOM,
    })
}

/// The errors in the names that a definition gives its resource, such as the plural.
fn names(crd: &Value) -> Vec<Cause> {
    let is_label = |text: &str| {
        let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        text.len() <= 63
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && !text.ends_with('-')
            && text.bytes().all(inside)
    };
    let mut causes = Vec::new();
    for name in ["plural", "singular", "kind", "listKind"] {
        let given = crd["spec"]["names"][name].as_str().unwrap_or_default();
        // Kinds have capital letters, but the check applies to the lower-case form.
        let checked = if name.ends_with("ind") { given.to_lowercase() } else { given.to_owned() };
        if !given.is_empty() && !is_label(&checked) {
            let why = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                       alphabetic character, and end with an alphanumeric character";
            causes.push(Cause::invalid(&format!("spec.names.{name}"), &format!("\"{given}\""), why));
        }
    }
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    if !group.is_empty() && !group.contains('.') {
        let why = "should be a domain with at least one dot";
        causes.push(Cause::invalid("spec.group", &format!("\"{group}\""), why));
    }
    causes
}

fn served(group: &str, version: &Value, at: &str) -> Result<Served, Vec<Cause>> {
    let name = version["name"].as_str().unwrap_or_default();
    let scale = version.pointer("/subresources/scale").map(|scale| Scale {
        spec_replicas: pointer(scale["specReplicasPath"].as_str().unwrap_or_default()),
        status_replicas: pointer(scale["statusReplicasPath"].as_str().unwrap_or_default()),
        selector: scale["labelSelectorPath"].as_str().map(pointer),
    });
    let raw = version.pointer("/schema/openAPIV3Schema").cloned();
    let structure = raw.as_ref().map(|raw| schema::read(raw, at)).transpose()?;
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten().map(column);
    Ok(Served {
        name: name.into(),
        api_version: format!("{group}/{name}").into(),
        active: version["served"].as_bool().unwrap_or(false),
        status: version.pointer("/subresources/status").is_some(),
        scale,
        deprecation: None,
        columns: columns.collect(),
        schema: raw.map(Arc::new),
        structure: structure.map(Arc::new),
    })
}

/// The warning for users of a deprecated version: the text in the definition, else kube-apiserver's text.
fn deprecation(crd: &Value, version: &Value, all: &[&Value]) -> Option<Arc<str>> {
    if version["deprecated"] != Value::Bool(true) {
        return None;
    }
    if let Some(words) = version["deprecationWarning"].as_str() {
        return Some(words.into());
    }
    let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, kind, own) = (text("/spec/group"), text("/spec/names/kind"), name(version));
    let stays = |other: &&&Value| other["served"] == Value::Bool(true) && other["deprecated"] != Value::Bool(true);
    let newer = all.iter().filter(stays).map(|other| name(other));
    let newer = newer.filter(|other| version_priority(other) > version_priority(&own));
    let instead = newer.max_by_key(|other| version_priority(other));
    let instead = instead.map(|other| format!("; use {group}/{other} {kind}")).unwrap_or_default();
    Some(format!("{group}/{own} {kind} is deprecated{instead}").into())
}

fn column(raw: &Value) -> Column {
    let text = |key: &str| raw[key].as_str().unwrap_or_default().to_owned();
    Column {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description: text("description"),
        priority: raw["priority"].as_i64().unwrap_or(0),
        path: text("jsonPath"),
    }
}

/// The `selectableFields` of all versions of a definition, without repetitions.
fn fields(versions: &[&Value]) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    for raw in versions.iter().flat_map(|version| version["selectableFields"].as_array().into_iter().flatten()) {
        let path = raw["jsonPath"].as_str().unwrap_or_default();
        let field = Field { label: path.trim_start_matches('.').into(), pointers: vec![pointer(path)], unset: "" };
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    fields
}

/// Converts a path such as `.spec.replicas` into a JSON pointer.
fn pointer(path: &str) -> String {
    path.replace('.', "/")
}
