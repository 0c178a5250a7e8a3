//! Compiles schemas, and refuses schemas that are not structural.
//!
//! Owns reading the keywords of schemas. Every schema of a definition is compiled once, when the definition is created
//! or changed.

use mock_cel::re2::Pattern;
use serde_json::Value;

use super::rules;
use super::{Additional, Bounds, Format, Kind, ListType, Schema};
use crate::status::Cause;

/// Compiles the root schema of a version; `at` is its path in the definition, for errors.
pub fn read(raw: &Value, at: &str) -> Result<Schema, Vec<Cause>> {
    let mut causes = Vec::new();
    match raw["type"].as_str() {
        Some("object") => {}
        None => causes.push(Cause::required(&format!("{at}.type"), "must not be empty at the root")),
        Some(other) => {
            let shown = format!("\"{other}\"");
            causes.push(Cause::invalid(&format!("{at}.type"), &shown, "must be object at the root"));
            if other == "array" && !raw["items"].is_object() {
                causes.push(Cause::required(&format!("{at}.items"), "must be specified"));
            }
        }
    }
    let mut schema = one(raw, at, false, &mut causes);
    for (name, below) in raw["properties"].as_object().into_iter().flatten() {
        schema.properties.retain(|(known, _)| known != name);
        // The shape of the metadata belongs to the server.
        let structural = name != "metadata";
        let below = one(below, &format!("{at}.properties[{name}]"), structural, &mut causes);
        schema.has_rules |= below.has_rules;
        schema.properties.push((name.clone(), below));
    }
    causes.dedup();
    if causes.is_empty() && schema.has_rules {
        causes = rules::compile(&mut schema, raw, at);
    }
    if causes.is_empty() { Ok(schema) } else { Err(causes) }
}

/// Compiles one schema. `structural` is false below `allOf`, `anyOf`, `oneOf` and `not`, which do not declare fields.
fn one(raw: &Value, at: &str, structural: bool, causes: &mut Vec<Cause>) -> Schema {
    let flag = |key: &str| raw[key] == Value::Bool(true);
    let mut schema = Schema {
        kind: kind(raw, at, structural, causes),
        nullable: flag("nullable"),
        default: raw.get("default").cloned(),
        default_bytes: raw.get("default").map_or(0, |default| default.to_string().len()),
        required: texts(&raw["required"]),
        allowed: raw["enum"].as_array().cloned(),
        format: raw["format"].as_str().and_then(Format::named),
        bounds: bounds(raw),
        list: match raw["x-kubernetes-list-type"].as_str() {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(texts(&raw["x-kubernetes-list-map-keys"])),
            _ => ListType::Atomic,
        },
        one_value: raw["x-kubernetes-map-type"] == "atomic",
        preserves: flag("x-kubernetes-preserve-unknown-fields"),
        embedded: flag("x-kubernetes-embedded-resource"),
        has_rules: rules::are_at(raw),
        ..Schema::default()
    };
    causes.extend(rules::misplaced(raw, at));
    if let Some(pattern) = raw["pattern"].as_str() {
        match Pattern::new(pattern) {
            Ok(pattern) => schema.pattern = Some(pattern),
            Err(error) => {
                let why = format!("must be a valid regular expression, but isn't: error parsing regexp: {error}");
                causes.push(Cause::invalid(&format!("{at}.pattern"), &format!("\"{pattern}\""), &why));
            }
        }
    }
    for (name, below) in raw["properties"].as_object().into_iter().flatten() {
        schema.properties.push((name.clone(), one(below, &format!("{at}.properties[{name}]"), structural, causes)));
    }
    schema.additional = match &raw["additionalProperties"] {
        Value::Bool(true) => Additional::Anything,
        like @ Value::Object(_) => {
            let below = one(like, &format!("{at}.additionalProperties"), structural, causes);
            Additional::Like(Box::new(below))
        }
        _ => Additional::Unsaid,
    };
    match &raw["items"] {
        items @ Value::Object(_) => {
            schema.items = Some(Box::new(one(items, &format!("{at}.items"), structural, causes)));
        }
        _ if structural && schema.kind == Kind::Array => {
            causes.push(Cause::required(&format!("{at}.items"), "must be specified"));
        }
        _ => {}
    }
    let mut several = |key: &str| -> Vec<Schema> {
        let list = raw[key].as_array().into_iter().flatten().enumerate();
        list.map(|(index, below)| one(below, &format!("{at}.{key}[{index}]"), false, causes)).collect()
    };
    (schema.all_of, schema.any_of, schema.one_of) = (several("allOf"), several("anyOf"), several("oneOf"));
    if raw["not"].is_object() {
        schema.not = Some(Box::new(one(&raw["not"], &format!("{at}.not"), false, causes)));
    }
    schema.has_rules |= schema.properties.iter().any(|(_, below)| below.has_rules)
        || schema.items.as_ref().is_some_and(|below| below.has_rules)
        || matches!(&schema.additional, Additional::Like(below) if below.has_rules);
    schema
}

fn kind(raw: &Value, at: &str, structural: bool, causes: &mut Vec<Cause>) -> Kind {
    let flag = |key: &str| raw[key] == Value::Bool(true);
    if flag("x-kubernetes-int-or-string") {
        return Kind::IntOrString;
    }
    match raw["type"].as_str() {
        Some("object") => Kind::Object,
        Some("array") => Kind::Array,
        Some("string") => Kind::Text,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        None | Some("") => {
            if structural && !flag("x-kubernetes-preserve-unknown-fields") {
                let why = "must not be empty for specified object fields";
                causes.push(Cause::required(&format!("{at}.type"), why));
            }
            Kind::Any
        }
        Some(other) => {
            let field = format!("{at}.type");
            let supported = "\"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"";
            let message = format!("Unsupported value: \"{other}\": supported values: {supported}");
            causes.push(Cause { reason: "FieldValueNotSupported", field, message });
            Kind::Any
        }
    }
}

fn bounds(raw: &Value) -> Bounds {
    let number = |key: &str| raw[key].as_number().cloned();
    let pair = |min: &str, max: &str| (raw[min].as_u64(), raw[max].as_u64());
    Bounds {
        min: number("minimum"),
        min_excluded: raw["exclusiveMinimum"] == Value::Bool(true),
        max: number("maximum"),
        max_excluded: raw["exclusiveMaximum"] == Value::Bool(true),
        multiple_of: raw["multipleOf"].as_f64(),
        length: pair("minLength", "maxLength"),
        items: pair("minItems", "maxItems"),
        properties: pair("minProperties", "maxProperties"),
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
