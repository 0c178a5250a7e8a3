//! The declared types of objects in CEL, for the type check of admission policies.
//!
//! Owns the conversion from the table of built-in types and from the schemas of custom resources.

use std::sync::Arc;

use mock_cel::{Decl, Fields, Order};
use serde_json::Value;

use super::builtin::{self, Field, Kind};
use super::catalogue::Resource;

/// Maximum depth of a declared type. Deeper fields have the type `dyn`, and so have fields of a recursive built-in type
/// where it contains itself.
const DEPTH_MAX: usize = 24;

/// The type of a resource's objects in a version; `None` if no type is known.
pub fn of(resource: &Resource, api_version: &str) -> Option<Arc<Decl>> {
    let mut fields = Fields::default();
    for key in ["apiVersion", "kind"] {
        fields.insert(key, Arc::new(Decl::Text));
    }
    if resource.custom {
        let served = resource.versions.iter().find(|served| &*served.api_version == api_version)?;
        let schema = served.schema.as_deref()?;
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            fields.insert(name, of_schema(schema, DEPTH_MAX));
        }
        fields.insert("metadata", of_type(builtin::OBJECT_META, &mut Vec::new()));
    } else {
        insert(&mut fields, resource.type_in(api_version), &mut Vec::new());
    }
    Some(Arc::new(Decl::Object(fields)))
}

fn of_type(name: &'static str, around: &mut Vec<&'static str>) -> Arc<Decl> {
    if around.contains(&name) || around.len() >= DEPTH_MAX {
        return Arc::new(Decl::Dyn);
    }
    let mut fields = Fields::default();
    insert(&mut fields, name, around);
    Arc::new(Decl::Object(fields))
}

/// Adds the fields of a built-in type. `around` has the types that contain this type.
fn insert(fields: &mut Fields, name: &'static str, around: &mut Vec<&'static str>) {
    around.push(name);
    for field in builtin::message(name).unwrap_or_default() {
        match field.kind {
            Kind::Message(inner) if field.name == "<inline>" => insert(fields, inner, around),
            _ => fields.insert(field.name, of_field(field, around)),
        }
    }
    around.pop();
}

fn of_field(field: &Field, around: &mut Vec<&'static str>) -> Arc<Decl> {
    let one = match field.kind {
        Kind::Text => Decl::Text,
        Kind::Integer => Decl::Int,
        Kind::Flag => Decl::Bool,
        Kind::Bytes => Decl::Bytes,
        Kind::Time | Kind::MicroTime => Decl::Time,
        Kind::Double => Decl::Double,
        Kind::Texts => Decl::List { item: Arc::new(Decl::Text), order: Order::Atomic },
        Kind::Quantity | Kind::IntOrText | Kind::Json | Kind::Either(_) => Decl::Dyn,
        Kind::Message(inner) => return wrapped(field, of_type(inner, around)),
    };
    wrapped(field, Arc::new(one))
}

fn wrapped(field: &Field, one: Arc<Decl>) -> Arc<Decl> {
    match (field.list, field.map) {
        (true, _) => Arc::new(Decl::List { item: one, order: Order::Atomic }),
        (_, true) => Arc::new(Decl::Map(one)),
        _ => one,
    }
}

fn of_schema(schema: &Value, levels: usize) -> Arc<Decl> {
    let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true && schema["properties"].is_null();
    if levels == 0 || is_open || schema["x-kubernetes-int-or-string"] == true {
        return Arc::new(Decl::Dyn);
    }
    let of = |part: &Value| of_schema(part, levels - 1);
    Arc::new(match (schema["type"].as_str().unwrap_or_default(), schema["format"].as_str().unwrap_or_default()) {
        ("boolean", _) => Decl::Bool,
        ("integer", _) => Decl::Int,
        ("number", _) => Decl::Double,
        ("string", "byte") => Decl::Bytes,
        ("string", "date-time") => Decl::Time,
        ("string", "date") => Decl::Date,
        ("string", "duration") => Decl::Duration,
        ("string", _) => Decl::Text,
        ("array", _) => Decl::List { item: of(&schema["items"]), order: Order::Atomic },
        ("object", _) if schema["additionalProperties"].is_object() => Decl::Map(of(&schema["additionalProperties"])),
        ("object", _) => {
            let mut fields = Fields::default();
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                fields.insert(name, of(schema));
            }
            Decl::Object(fields)
        }
        _ => Decl::Dyn,
    })
}
