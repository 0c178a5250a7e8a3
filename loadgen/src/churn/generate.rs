//! Makes a template from a custom resource's definition: required fields, and optional fields whose values can be
//! guessed. Pure: no I/O.
//!
//! A template is a guess, because a definition does not show all rules of CEL or of a webhook. The API server decides
//! before the run starts whether a template is valid.

use serde_json::{Map, Value, json};

use super::resource::Scope;
use super::{pattern, template};

/// The greatest depth of required fields, deeper than in any resource that users write by hand.
const DEPTH: usize = 8;
/// The greatest depth of defaults, deeper than in any schema that has defaults.
const FILL_DEPTH: usize = 32;
/// Maximum number of optional plain fields of `spec` in a template, so that updates can change a field.
const OPTIONAL: usize = 12;
/// Maximum number of optional fields of `spec` that are tried one after another.
pub(super) const VARIANTS: usize = 30;
pub(super) const SCHEMA: &str = "/schema/openAPIV3Schema";
/// The ends of the names of texts that programs in Go often read as a duration, which a definition does not tell. A
/// typed client reads no object of the kind if it cannot read one of them.
const DURATIONS: [&str; 7] = ["duration", "interval", "timeout", "period", "ttl", "delay", "renewbefore"];
/// The name of the old value in rules of CEL.
const OLD: &str = "oldSelf";

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("no object can be made from the definition: `{at}` {problem}; write a `template`")]
pub struct NoTemplate {
    at: String,
    problem: String,
}

/// The template of one version of a `CustomResourceDefinition`, and whether its objects are in namespaces.
///
/// # Errors
///
/// Returns an error if the schema does not describe a required field enough, for example if no text is found for a
/// pattern.
pub fn generate(crd: &Value, version: &str) -> Result<(Value, Scope), NoTemplate> {
    let refuse = |at: &str, problem: &str| NoTemplate { at: at.to_owned(), problem: problem.to_owned() };
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let scope = if text("/spec/scope") == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let found = versions.into_iter().find(|one| one["name"] == version && one["served"] != false);
    let Some(schema) = found.and_then(|version| version.pointer(SCHEMA)) else {
        return Err(refuse("spec.versions", &format!("has no served version {version} with a schema")));
    };
    let mut object = json!({"kind": text("/spec/names/kind")});
    let required = names(&schema["required"]);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let is_wanted = required.contains(&name.as_str()) || name == "spec";
        if is_wanted && !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()) {
            object[name] = value(property, name, 0)?;
        }
    }
    Ok((object, scope))
}

/// Possible templates of a definition, the most likely first; the API server decides which is valid. The first template
/// is that of [`generate`], and the second template has only the required fields. Each further template has one
/// optional field of `spec` too, for rules such as "one of these".
pub fn variants(crd: &Value, version: &str) -> Vec<Value> {
    let Ok((whole, _)) = generate(crd, version) else { return Vec::new() };
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let found = versions.into_iter().find(|one| one["name"] == version);
    let schema = found.and_then(|version| version.pointer(SCHEMA)).cloned().unwrap_or_default();
    let spec = &schema["properties"]["spec"];
    if !whole["spec"].is_object() {
        return vec![whole];
    }
    let mut least = whole.clone();
    let required = names(&spec["required"]);
    if let Some(parts) = least["spec"].as_object_mut() {
        parts.retain(|name, _| required.contains(&name.as_str()));
    }
    let optional = spec["properties"].as_object().into_iter().flatten();
    let optional = optional.filter(|(name, _)| !required.contains(&name.as_str())).take(VARIANTS);
    let with = optional.filter_map(|(name, property)| {
        let mut one = least.clone();
        one["spec"][name] = value(property, name, 1).ok()?;
        Some(one)
    });
    let mut all = vec![whole, least.clone()];
    all.extend(with);
    all
}

/// Adds the defaults of a schema to an object, as the API server does before clients see the object.
pub fn fill(schema: &Value, object: &mut Value) {
    fill_in(schema, object, 0);
}

fn fill_in(schema: &Value, value: &mut Value, depth: usize) {
    if depth > FILL_DEPTH {
        return;
    }
    match value {
        Value::Object(parts) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if !parts.contains_key(name) && !property["default"].is_null() {
                    parts.insert(name.clone(), as_it_is(&property["default"]));
                }
                if let Some(part) = parts.get_mut(name) {
                    fill_in(property, part, depth + 1);
                }
            }
            let others = &schema["additionalProperties"];
            if others.is_object() {
                parts.values_mut().for_each(|part| fill_in(others, part, depth + 1));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(&schema["items"], item, depth + 1)),
        _ => {}
    }
}

pub(super) fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(super) fn value(schema: &Value, at: &str, depth: usize) -> Result<Value, NoTemplate> {
    let value = any_value(schema, at, depth);
    // A rule on an object may be about one of its fields, see `object`.
    if schema["type"] != "object" && is_fixed(schema) { value.map(fixed) } else { value }
}

fn any_value(schema: &Value, at: &str, depth: usize) -> Result<Value, NoTemplate> {
    let refuse = |problem: &str| Err(NoTemplate { at: at.to_owned(), problem: problem.to_owned() });
    if depth > DEPTH {
        return refuse("is too deep to be guessed");
    }
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
        return Ok(any_of(values, schema));
    }
    for key in ["example", "default"] {
        if !schema[key].is_null() {
            return Ok(as_it_is(&schema[key]));
        }
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return Ok(number(schema));
    }
    match schema["type"].as_str() {
        Some("string") => string(schema, at),
        Some("integer" | "number") => Ok(number(schema)),
        Some("boolean") => Ok(json!(true)),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0).min(16);
            let item =
                if least == 0 { return Ok(json!([])) } else { value(&schema["items"], &format!("{at}[]"), depth + 1)? };
            Ok((0..least).map(|_| item.clone()).collect())
        }
        Some("object") => object(schema, at, depth),
        _ if schema["x-kubernetes-preserve-unknown-fields"] == true => Ok(json!({})),
        _ => refuse("has a type that cannot be guessed"),
    }
}

/// A placeholder for one of these values at each write, unless a rule may require a constant value.
fn any_of(values: &[Value], schema: &Value) -> Value {
    match values {
        [] => Value::Null,
        [first, ..] if values.len() == 1 || has_rules(schema) => as_it_is(first),
        _ => json!(template::one_of(values)),
    }
}

/// A value of the schema whose texts are taken literally, not as placeholders.
fn as_it_is(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(template::plain(text)),
        Value::Array(items) => items.iter().map(as_it_is).collect(),
        Value::Object(parts) => {
            Value::Object(parts.iter().map(|(key, value)| (key.clone(), as_it_is(value))).collect())
        }
        other => other.clone(),
    }
}

fn has_rules(schema: &Value) -> bool {
    !schema["x-kubernetes-validations"].is_null()
}

/// Whether a rule of CEL compares this value with its old value, so that no write may change the value.
fn is_fixed(schema: &Value) -> bool {
    rules(schema).any(|rule| rule.contains(OLD))
}

/// Whether a rule of CEL on an object compares one of its fields with the old value.
fn fixes(schema: &Value, name: &str) -> bool {
    rules(schema).any(|rule| {
        rule.match_indices(OLD).any(|(at, _)| match rule[at + OLD.len()..].strip_prefix('.') {
            Some(rest) => rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next() == Some(name),
            None => true,
        })
    })
}

fn rules(schema: &Value) -> impl Iterator<Item = &str> {
    schema["x-kubernetes-validations"].as_array().into_iter().flatten().filter_map(|rule| rule["rule"].as_str())
}

/// A value that is the same in each write: the value that the first write has.
fn fixed(value: Value) -> Value {
    template::first(&value).unwrap_or(value)
}

fn object(schema: &Value, at: &str, depth: usize) -> Result<Value, NoTemplate> {
    let required = names(&schema["required"]);
    // A rule on the whole may forbid a value that its schema allows for a part.
    let is_ruled = has_rules(schema);
    let (mut parts, mut optional) = (Map::new(), 0);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let below = format!("{at}.{name}");
        let value = |property: &Value| {
            let value = value(property, &below, depth + 1);
            if is_ruled && fixes(schema, name) { value.map(fixed) } else { value }
        };
        if required.contains(&name.as_str()) {
            parts.insert(name.clone(), value(property)?);
        } else if depth == 0 && optional < OPTIONAL && is_plain(property, is_ruled) {
            // An optional field that cannot be guessed is left out.
            let Ok(guessed) = value(property) else { continue };
            optional += 1;
            parts.insert(name.clone(), guessed);
        }
    }
    Ok(Value::Object(parts))
}

/// Whether the value of an optional field can be guessed safely. Values with a special meaning are guessed only if no
/// rule reads them.
fn is_plain(schema: &Value, is_ruled: bool) -> bool {
    let is_number = matches!(schema["format"].as_str(), Some("int32" | "int64"));
    let is_free = (schema["format"].is_null() || is_number) && !has_rules(schema);
    let is_open = schema["pattern"].is_null() && schema["enum"].is_null();
    is_free && (is_open || !is_ruled) && matches!(schema["type"].as_str(), Some("string" | "integer" | "boolean"))
}

fn number(schema: &Value) -> Value {
    let exclusive = |key: &str| i64::from(schema[key] == true);
    let bound = |key: &str| schema[key].as_f64().map(round);
    let low = bound("minimum").map(|low| low + exclusive("exclusiveMinimum"));
    let high = bound("maximum").map(|high| high - exclusive("exclusiveMaximum"));
    let (low, high) = match (low, high) {
        (Some(low), Some(high)) => (low, high),
        (Some(low), None) => (low, low.saturating_add(9)),
        (None, Some(high)) => (high.min(1), high),
        (None, None) => (1, 9),
    };
    json!(format!("${{random {low}..{}}}", high.min(low.saturating_add(99)).max(low)))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "bounds of numbers in schemas; the API server judges what comes of them"
)]
fn round(bound: f64) -> i64 {
    bound as i64
}

fn string(schema: &Value, at: &str) -> Result<Value, NoTemplate> {
    let bound = |key: &str| schema[key].as_u64().and_then(|bound| usize::try_from(bound).ok());
    if let Some(wanted) = schema["pattern"].as_str() {
        let texts =
            pattern::matching(wanted, bound("minLength").unwrap_or(0), bound("maxLength").unwrap_or(usize::MAX));
        if texts.is_empty() {
            let problem = format!("has to match {}, and no text that does was found", schema["pattern"]);
            return Err(NoTemplate { at: at.to_owned(), problem });
        }
        return Ok(any_of(&texts.into_iter().map(Value::String).collect::<Vec<_>>(), schema));
    }
    let text = match schema["format"].as_str() {
        Some("date-time") => "2026-01-01T00:00:00Z".to_owned(),
        Some("date") => "2026-01-01".to_owned(),
        Some("uuid") => "123e4567-e89b-42d3-a456-426614174000".to_owned(),
        Some("uri") => "https://example.com/${i}".to_owned(),
        Some("email") => "a${i}@example.com".to_owned(),
        Some("ipv4") => "192.0.2.${random 1..254}".to_owned(),
        Some("duration") => "${random 1..59}s".to_owned(),
        Some("byte") => "bG9uZ2hhdWw=".to_owned(),
        _ => {
            let (least, most) = (schema["minLength"].as_u64().unwrap_or(6), schema["maxLength"].as_u64().unwrap_or(12));
            let name = at.rsplit('.').next().unwrap_or_default().to_lowercase();
            if most >= 3
                && schema["minLength"].as_u64().unwrap_or(0) <= 3
                && DURATIONS.iter().any(|end| name.ends_with(end))
            {
                return Ok(json!("${random 10..59}s"));
            }
            let length = least.clamp(1, most.max(1)).max(6.min(most));
            format!("${{text {length}}}")
        }
    };
    Ok(json!(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(spec: &Value) -> Value {
        json!({"spec": {"scope": "Cluster", "names": {"kind": "Cache"}, "versions": [
            {"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"properties": {
                "apiVersion": {"type": "string"}, "spec": spec, "status": {"type": "object"}}}}}]}})
    }

    #[test]
    fn required_and_plain_fields_are_written() {
        let spec = json!({"type": "object", "required": ["size", "mode", "pods", "note"], "properties": {
            "size": {"type": "integer", "minimum": 3, "maximum": 5},
            "mode": {"type": "string", "enum": ["fast", "safe"]},
            "note": {"type": "string", "maxLength": 3},
            "pods": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["port"], "properties": {
                "port": {"x-kubernetes-int-or-string": true}, "left": {"type": "string"}}}},
            "hint": {"type": "string"},
            "code": {"type": "string", "pattern": "^(a|bb)$"},
            "lost": {"type": "string", "pattern": "a\\bb"},
            "level": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 2},
            "since": {"type": "string", "format": "made-up"},
        }});
        let (template, scope) = generate(&crd(&spec), "v1").unwrap();
        assert_eq!(scope, Scope::Cluster);
        assert_eq!(
            template,
            json!({"kind": "Cache", "spec": {
            "size": "${random 3..5}", "mode": r#"${one of ["fast","safe"]}"#, "note": "${text 3}", "hint": "${text 6}",
            "code": r#"${one of ["a","bb"]}"#, "level": "${random 1..2}", "pods": [{"port": "${random 1..9}"}]}})
        );
        template::Template::new(&template, &[]).unwrap();
    }

    /// If a schema has rules, no optional value is chosen: a rule may require a constant value, or forbid one value
    /// beside another.
    #[test]
    fn where_rules_are_nothing_is_chosen_that_need_not_be() {
        let rule = json!([{"rule": "self != null"}]);
        let spec = json!({"type": "object", "required": ["mode"], "x-kubernetes-validations": rule, "properties": {
            "mode": {"type": "string", "enum": ["fast", "${safe}"], "x-kubernetes-validations": rule},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "code": {"type": "string", "pattern": "^a$"},
            "hint": {"type": "string"},
        }});
        let (template, _) = generate(&crd(&spec), "v1").unwrap();
        assert_eq!(template["spec"], json!({"mode": "fast", "hint": "${text 6}"}));
        let one = json!({"type": "object", "required": ["mode"], "properties": {"mode": {"type": "string", "enum": ["${safe}"]}}});
        assert_eq!(generate(&crd(&one), "v1").unwrap().0["spec"], json!({"mode": "$${safe}"}));
    }

    /// A field that must stay the same has no placeholder, whether the rule is on the field or on the object.
    #[test]
    fn a_field_that_may_not_change_does_not_vary() {
        let rule = |text: &str| json!([{"rule": text}]);
        let spec = json!({"type": "object", "required": ["name", "class", "other", "old"], "properties": {
            "name": {"type": "string", "x-kubernetes-validations": rule("self == oldSelf")},
            "class": {"type": "string"}, "other": {"type": "integer"}, "old": {"type": "object", "required": ["a"],
                "x-kubernetes-validations": rule("oldSelf == self"), "properties": {"a": {"type": "integer"}}},
        }, "x-kubernetes-validations": rule("self.class == oldSelf.class")});
        let (template, _) = generate(&crd(&spec), "v1").unwrap();
        let vary = |pointer: &str| template.pointer(pointer).unwrap().to_string().contains("${");
        assert!(vary("/spec/other"), "{template}");
        assert!(!["/spec/name", "/spec/class", "/spec/old/a"].iter().any(|pointer| vary(pointer)), "{template}");
    }

    #[test]
    fn a_text_with_the_name_of_a_duration_is_a_duration() {
        let spec = json!({"type": "object", "required": ["renewBefore", "syncInterval", "note", "ttl"], "properties": {
            "renewBefore": {"type": "string"}, "syncInterval": {"type": "string", "maxLength": 3},
            "ttl": {"type": "string", "maxLength": 2}, "note": {"type": "string"},
        }});
        let (template, _) = generate(&crd(&spec), "v1").unwrap();
        let duration = "${random 10..59}s";
        assert_eq!(
            template["spec"],
            json!({"renewBefore": duration, "syncInterval": duration, "ttl": "${text 2}", "note": "${text 6}"})
        );
    }

    #[test]
    fn variants_have_each_optional_field_alone() {
        let spec = json!({"type": "object", "required": ["size"], "x-kubernetes-validations": [{"rule": "has(self.a) != has(self.b)"}], "properties": {
            "size": {"type": "integer", "minimum": 3, "maximum": 3},
            "a": {"type": "string", "maxLength": 1},
            "b": {"type": "object", "properties": {}},
        }});
        let specs: Vec<Value> = variants(&crd(&spec), "v1").into_iter().map(|one| one["spec"].clone()).collect();
        let size = "${random 3..3}";
        assert_eq!(
            specs,
            [
                json!({"size": size, "a": "${text 1}"}),
                json!({"size": size}),
                json!({"size": size, "a": "${text 1}"}),
                json!({"size": size, "b": {}}),
            ]
        );
        assert_eq!(variants(&crd(&spec), "v9"), Vec::<Value>::new());
    }

    #[test]
    fn what_cannot_be_guessed_is_told() {
        let wanted = |pattern: &str, most: u64| {
            json!({"type": "object", "required": ["code"], "properties": {
                "code": {"type": "string", "pattern": pattern, "maxLength": most}}})
        };
        let spec = wanted("^a{5}$", 4);
        let error = generate(&crd(&spec), "v1").unwrap_err().to_string();
        assert_eq!(
            error,
            "no object can be made from the definition: `spec.code` has to match \"^a{5}$\", and no text that does was found; write a `template`"
        );
        assert!(generate(&crd(&spec), "v2").unwrap_err().to_string().contains("has no served version v2"));
        assert_eq!(generate(&crd(&wanted("^a{5}$", 5)), "v1").unwrap().0["spec"]["code"], "aaaaa");
    }
}
