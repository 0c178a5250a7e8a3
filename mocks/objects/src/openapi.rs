//! The OpenAPI documents of the server, as far as `kubectl` needs them.
//!
//! Owns `/openapi/v3` and `/openapi/v2`. The documents list every path with its kind and query parameters, which
//! `kubectl` reads before it writes. The documents also contain the schemas of all types, which `kubectl explain`
//! shows. `types` makes the schemas of built-in types; custom resources have their own.

mod types;
mod words;

use serde_json::{Map, Value, json};

use super::builtin;
use super::catalogue::{Catalogue, Resource, Served};
use types::Home;

/// An OpenAPI v2 document in gnostic's protobuf encoding. The document has a version (field 1), an info block (2:
/// title, version), and empty paths (8) and definitions (9). A client that finds no schema of a type skips its own
/// checks.
const V2_PROTOBUF: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.34.1\x42\x00\x4a\x00";
pub const V2_MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

#[derive(Debug)]
pub enum Document {
    Json(Value),
    /// A document of the media type [`V2_MEDIA_TYPE`].
    Protobuf(&'static [u8]),
}

/// The document at an OpenAPI path; `None` for other paths.
pub fn document(path: &str, accept: &str, catalogue: &Catalogue, revision: u64) -> Option<Document> {
    let rest = path.strip_prefix("/openapi/")?;
    match rest.trim_end_matches('/') {
        "v2" => Some(v2(accept, catalogue)),
        "v3" => {
            let mut paths = Map::new();
            for (root, _, _) in roots(catalogue) {
                let url = format!("/openapi/v3/{root}?hash={revision}");
                paths.insert(root, json!({"serverRelativeURL": url}));
            }
            Some(Document::Json(json!({"paths": paths})))
        }
        other => {
            let wanted = other.strip_prefix("v3/")?;
            let (_, group, version) = roots(catalogue).into_iter().find(|(root, _, _)| root == wanted)?;
            Some(Document::Json(v3(&group, &version, catalogue)))
        }
    }
}

/// `(api/v1, group, version)` of every served version.
fn roots(catalogue: &Catalogue) -> Vec<(String, String, String)> {
    let mut roots = Vec::new();
    for resource in catalogue.iter() {
        for version in resource.versions.iter().filter(|version| version.active) {
            let entry = (root(resource, version), resource.group.to_string(), version.name.to_string());
            if !roots.contains(&entry) {
                roots.push(entry);
            }
        }
    }
    roots.sort();
    roots
}

fn root(resource: &Resource, version: &Served) -> String {
    let prefix = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{prefix}/{}", version.api_version)
}

fn v3(group: &str, version: &str, catalogue: &Catalogue) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for resource in catalogue.iter().filter(|resource| &*resource.group == group) {
        let Some(served) = resource.version(version) else { continue };
        let kind = gvk(resource, served);
        let operation = |verb: &str| {
            let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"]
                .iter()
                .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
                .collect();
            json!({
                "operationId": format!("{verb}{}", resource.kind), "parameters": parameters, "responses": {},
                "x-kubernetes-action": verb, "x-kubernetes-group-version-kind": kind,
            })
        };
        let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let base = format!("/{}{place}/{}", root(resource, served), resource.plural);
        paths.insert(base.clone(), json!({"get": operation("list"), "post": operation("post")}));
        let one = json!({
            "get": operation("get"), "put": operation("put"), "patch": operation("patch"),
            "delete": operation("delete"),
        });
        paths.insert(format!("{base}/{{name}}"), one);
        let schema = schema(resource, served, Home::Components, &mut schemas);
        schemas.insert(schema_name(resource, served), schema);
    }
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": super::VERSION}, "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn v2(accept: &str, catalogue: &Catalogue) -> Document {
    // Old clients accept protobuf only, and give up without it.
    if accept.contains("protobuf") && !accept.contains("json") && !accept.contains("*/*") {
        return Document::Protobuf(V2_PROTOBUF);
    }
    let mut definitions = Map::new();
    for resource in catalogue.iter() {
        for served in resource.versions.iter().filter(|version| version.active) {
            let schema = schema(resource, served, Home::Definitions, &mut definitions);
            definitions.insert(schema_name(resource, served), schema);
        }
    }
    Document::Json(json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": super::VERSION}, "paths": {},
        "definitions": definitions,
    }))
}

fn schema(resource: &Resource, served: &Served, home: Home, all: &mut Map<String, Value>) -> Value {
    let mut schema = match &served.schema {
        Some(schema) => (**schema).clone(),
        None => types::schema(resource.type_in(&served.api_version), home, all)
            .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
    };
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    let object = schema.as_object_mut().expect("made an object above");
    object.insert("x-kubernetes-group-version-kind".to_owned(), json!([gvk(resource, served)]));
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        for (key, text) in [
            ("apiVersion", "The group and the version of the API that the object is written in."),
            ("kind", "The kind of the object."),
        ] {
            properties.insert(key.to_owned(), json!({"type": "string", "description": text}));
        }
        if !properties.contains_key("metadata") || resource.custom {
            let mut metadata = types::metadata(home, all);
            if let Some(text) = words::of_field("", "metadata") {
                metadata["description"] = Value::from(text);
            }
            properties.insert("metadata".to_owned(), metadata);
        }
    }
    schema
}

fn gvk(resource: &Resource, served: &Served) -> Value {
    json!({"group": &*resource.group, "version": &*served.name, "kind": &*resource.kind})
}

/// The name of a schema, with the group's labels in reverse order, as in real documents: `dev.longhaul.v1.Package`.
fn schema_name(resource: &Resource, served: &Served) -> String {
    if !resource.custom {
        return builtin::published_name(resource.type_in(&served.api_version));
    }
    let mut parts: Vec<&str> = resource.group.split('.').collect();
    parts.reverse();
    format!("{}.{}.{}", parts.join("."), served.name, resource.kind)
}
