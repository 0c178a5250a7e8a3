//! The OpenAPI schemas of built-in types, made from the table of their fields.
//!
//! Owns the names of schemas and the merge strategies of lists (for `kubectl apply`). `words` contains the
//! descriptions.

use serde_json::{Map, Value, json};

use super::words;
use crate::kinds;
use crate::protobuf::schema::{Field, Kind, message};

/// `(message, field, strategy, merge key)`, from the API reference ("patch strategy", "patch merge key").
type Merged = (&'static str, &'static str, &'static str, &'static str);

/// The merge strategies of list fields in types that several kinds share, such as containers.
const MERGED: &[Merged] = &[
    ("Container", "env", "merge", "name"),
    ("Container", "ports", "merge", "containerPort"),
    ("Container", "volumeDevices", "merge", "devicePath"),
    ("Container", "volumeMounts", "merge", "mountPath"),
    ("EphemeralContainerCommon", "env", "merge", "name"),
    ("EphemeralContainerCommon", "ports", "merge", "containerPort"),
    ("EphemeralContainerCommon", "volumeMounts", "merge", "mountPath"),
    ("PodSpec", "containers", "merge", "name"),
    ("PodSpec", "ephemeralContainers", "merge", "name"),
    ("PodSpec", "hostAliases", "merge", "ip"),
    ("PodSpec", "imagePullSecrets", "merge", "name"),
    ("PodSpec", "initContainers", "merge", "name"),
    ("PodSpec", "resourceClaims", "merge,retainKeys", "name"),
    ("PodSpec", "schedulingGates", "merge", "name"),
    ("PodSpec", "topologySpreadConstraints", "merge", "topologyKey"),
    ("PodSpec", "volumes", "merge,retainKeys", "name"),
    ("ObjectMeta", "finalizers", "merge", ""),
    ("ObjectMeta", "ownerReferences", "merge", "uid"),
];

/// The merge strategies of all list fields, both in shared types and in single kinds.
fn merged() -> impl Iterator<Item = &'static Merged> {
    MERGED.iter().chain(kinds::ALL.iter().flat_map(|kind| kind.published_merges))
}

/// The place in an OpenAPI document that contains the schemas.
#[derive(Debug, Clone, Copy)]
pub(super) enum Home {
    /// `#/components/schemas/` in OpenAPI 3.
    Components,
    /// `#/definitions/` in OpenAPI 2.
    Definitions,
}

/// The schema of a protobuf message; adds the schemas to which the schema refers to `all`. `None` means that the table
/// of types does not contain the message.
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
    fields: &[Field],
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
        let merged = merged().find(|(of, known, _, _)| *of == name && *known == field.name);
        if let Some((_, _, strategy, key)) = merged {
            for (extension, value) in [("x-kubernetes-patch-strategy", strategy), ("x-kubernetes-patch-merge-key", key)]
            {
                if !value.is_empty() {
                    property[extension] = Value::from(*value);
                }
            }
        }
        if field.shown && !matches!(field.kind, Kind::Flag) {
            required.push(field.name);
        }
        properties.insert(field.name.to_owned(), property);
    }
}

/// The schema of a field whose value is a message.
pub(super) fn property(name: &'static str, home: Home, all: &mut Map<String, Value>) -> Value {
    json!({"allOf": [of_kind(&Kind::Message(name), home, all)]})
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
            refer("Quantity", home, all, json!({"type": "string", "description": text}))
        }
        Kind::IntOrText => {
            let mut schema = json!({"format": "int-or-string", "description": "A number or a text."});
            match home {
                Home::Components => schema["oneOf"] = json!([{"type": "integer"}, {"type": "string"}]),
                // OpenAPI 2 has no alternatives.
                Home::Definitions => schema["type"] = json!("string"),
            }
            refer("IntOrString", home, all, schema)
        }
        Kind::Double => json!({"type": "number"}),
        Kind::Json | Kind::Either(_) => json!({"type": "object"}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Message(inner) => {
            let name = format!("io.k8s.api.types.{inner}");
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
    let name = format!("io.k8s.api.types.{name}");
    all.entry(&name).or_insert(schema);
    reference(&name, home)
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

    /// Every built-in kind except `CustomResourceDefinition` has fields, and every reference has a target.
    #[test]
    fn every_kind_has_a_schema() {
        for resource in Catalogue::builtin().iter().filter(|resource| !resource.is_definition()) {
            let mut all = Map::new();
            let schema = schema(&resource.kind, Home::Components, &mut all);
            assert!(schema.is_some_and(|schema| schema["properties"].is_object()), "{}", resource.full_name);
            let text = Value::Object(all.clone()).to_string();
            for reference in text.split("#/components/schemas/").skip(1) {
                let name = reference.split('"').next().unwrap();
                assert!(all[name].is_object(), "{name}");
            }
        }
    }

    #[test]
    fn what_merges_is_there() {
        for (of, name, _, _) in merged() {
            let fields = message(of).unwrap_or_else(|| panic!("no {of}"));
            assert!(fields.iter().any(|field| field.name == *name), "{of}.{name}");
        }
    }
}
