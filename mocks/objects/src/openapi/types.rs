//! The OpenAPI schemas of built-in types, made from the table of their fields.
//!
//! The module `words` owns the descriptions in the schemas.

use serde_json::{Map, Value, json};

use super::words;
use crate::builtin::{self, Field, Kind, ListType, OBJECT_META, message};

/// The key of an OpenAPI document that contains the schemas.
#[derive(Debug, Clone, Copy)]
pub(super) enum Home {
    /// `#/components/schemas/` in OpenAPI 3.
    Components,
    /// `#/definitions/` in OpenAPI 2.
    Definitions,
}

/// Makes the schema of a protobuf message, and adds to `all` the schemas to which this schema refers. `None` means that
/// the table of types does not contain the message.
pub(super) fn schema(name: &str, home: Home, all: &mut Map<String, Value>) -> Option<Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let fields = message(name)?;
    collect(name, fields, home, all, &mut properties, &mut required);
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = Value::from(required);
    }
    if let Some(text) = words::of_type(name) {
        schema["description"] = Value::from(text);
    }
    Some(schema)
}

fn collect(
    name: &str,
    fields: &'static [Field],
    home: Home,
    all: &mut Map<String, Value>,
    properties: &mut Map<String, Value>,
    required: &mut Vec<&'static str>,
) {
    for field in fields {
        if let ("<inline>", Kind::Message(inner)) = (field.name, &field.kind) {
            collect(inner, message(inner).unwrap_or_default(), home, all, properties, required);
            continue;
        }
        let one = of_kind(&field.kind, home, all);
        let mut property = match (field.list, field.map) {
            (true, _) => json!({"type": "array", "items": one}),
            (_, true) => json!({"type": "object", "additionalProperties": one}),
            // Keywords beside a reference are ignored, so it goes into a list of one.
            _ if one.get("$ref").is_some() => json!({"allOf": [one]}),
            _ => one,
        };
        if let Some(text) = words::of_field(name, field.name) {
            property["description"] = Value::from(text);
        }
        publish(&mut property, field);
        if field.required() {
            required.push(field.name);
        }
        properties.insert(field.name.to_owned(), property);
    }
}

/// Adds the published attributes of a field to its schema: allowed values, format, default, merge rules.
fn publish(property: &mut Value, field: &'static Field) {
    let valued = if field.list { &mut property["items"] } else { &mut *property };
    if let Some(allowed) = field.allowed() {
        valued["enum"] = allowed.map(Value::from).collect();
    }
    if let Some(format) = field.format() {
        valued["format"] = Value::from(format);
    }
    if let Some(default) = field.absent() {
        property["default"] = default.clone();
    }
    if field.list {
        let (kind, keys) = match field.list_type() {
            ListType::Map(keys) => ("map", Some(keys)),
            ListType::Set => ("set", None),
            ListType::Atomic => ("atomic", None),
        };
        property["x-kubernetes-list-type"] = Value::from(kind);
        if let Some(keys) = keys {
            property["x-kubernetes-list-map-keys"] = keys.split(',').map(Value::from).collect();
        }
    } else if field.is_one_value() {
        property["x-kubernetes-map-type"] = Value::from("atomic");
    }
    if let Some((strategy, key)) = field.merge() {
        property["x-kubernetes-patch-strategy"] = Value::from(strategy);
        if let Some(key) = key {
            property["x-kubernetes-patch-merge-key"] = Value::from(key);
        }
    }
}

/// The schema of an object's metadata.
pub(super) fn metadata(home: Home, all: &mut Map<String, Value>) -> Value {
    json!({"allOf": [of_kind(&Kind::Message(OBJECT_META), home, all)]})
}

fn of_kind(kind: &Kind, home: Home, all: &mut Map<String, Value>) -> Value {
    match kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Integer => json!({"type": "integer"}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Bytes => json!({"type": "string", "format": "byte"}),
        Kind::Time | Kind::MicroTime => json!({"type": "string", "format": "date-time"}),
        Kind::Quantity => {
            let text = "An amount with a unit: 100m, 64Mi, 2.";
            refer(
                "io.k8s.apimachinery.pkg.api.resource.Quantity",
                home,
                all,
                json!({"type": "string", "description": text}),
            )
        }
        Kind::IntOrText => {
            let mut schema = json!({"format": "int-or-string", "description": "A number or a text."});
            match home {
                Home::Components => schema["oneOf"] = json!([{"type": "integer"}, {"type": "string"}]),
                // OpenAPI 2 has no alternatives.
                Home::Definitions => schema["type"] = json!("string"),
            }
            refer("io.k8s.apimachinery.pkg.util.intstr.IntOrString", home, all, schema)
        }
        Kind::Double => json!({"type": "number"}),
        Kind::Json | Kind::Either(_) => json!({"type": "object"}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Message(inner) => {
            let name = builtin::published_name(inner);
            if !all.contains_key(&name) {
                // Inserted before it is complete, because a type may contain itself.
                all.insert(name.clone(), Value::Null);
                let made = schema(inner, home, all).unwrap_or_else(|| json!({"type": "object"}));
                all.insert(name.clone(), made);
            }
            reference(&name, home)
        }
    }
}

/// Makes a reference to a type that is not a protobuf message.
fn refer(name: &str, home: Home, all: &mut Map<String, Value>, schema: Value) -> Value {
    all.entry(name).or_insert(schema);
    reference(name, home)
}

fn reference(name: &str, home: Home) -> Value {
    let root = match home {
        Home::Components => "#/components/schemas/",
        Home::Definitions => "#/definitions/",
    };
    json!({"$ref": format!("{root}{name}")})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    /// Every built-in kind has fields, and every reference has a target.
    #[test]
    fn every_kind_has_a_schema() {
        for resource in Catalogue::builtin().iter() {
            let mut all = Map::new();
            let schema = schema(resource.type_in(resource.stored_api_version()), Home::Components, &mut all);
            assert!(schema.is_some_and(|schema| schema["properties"].is_object()), "{}", resource.full_name);
            let text = Value::Object(all.clone()).to_string();
            for reference in text.split("#/components/schemas/").skip(1) {
                let name = reference.split('"').next().unwrap();
                assert!(all[name].is_object(), "{name}");
            }
        }
    }
}
