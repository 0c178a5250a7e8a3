//! The types of fields in built-in kinds.
//!
//! Refuses a body in which a field has the wrong JSON type, and removes values that mean "not set". The real server
//! decodes bodies into typed structures. The real server's answers therefore contain no `null`, no empty texts and no
//! empty lists, and contain quantities in canonical form. The module `unknown` drops fields that a type does not have.
//! This module must not know which values are valid.

use std::borrow::Cow;

use mock_cel::Quantity;
use serde_json::{Map, Value};

use crate::builtin::{self, Field, Kind, OBJECT_META, message};
use crate::catalogue::Resource;
use crate::fields::seconds;
use crate::status::Failure;

/// The pattern for quantities in a real server's error messages.
const AMOUNT: &str = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$";
/// Names of lists that the server shows even when they are empty.
const SHOWN: &[&str] = &["verbs", "rules", "conditions", "subjects"];

/// Length of `2006-01-02T15:04:05`.
const SECONDS_BYTES: usize = 19;

/// Why a value does not have its built-in type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The value is not a JSON object.
    #[error("it is not an object")]
    NotAnObject,
    /// A field has another JSON type than `expected`.
    #[error("{path}: expected {expected}, got {got}")]
    Field { path: String, expected: &'static str, got: Value },
    /// A field is not a valid quantity.
    #[error("{path}: quantities must match the regular expression '{AMOUNT}', got {got}")]
    Amount { path: String, got: Value },
}

/// Checks the types of all fields in a built-in object, and removes values that mean "not set".
pub fn conform(value: &mut Value, resource: &Resource) -> Result<(), Failure> {
    if resource.custom {
        // The metadata has the same type in all kinds.
        let (Some(fields), Some(Value::Object(metadata))) = (message(OBJECT_META), value.get_mut("metadata")) else {
            return Ok(());
        };
        return walk(metadata, fields, "metadata").map_err(|why| undecodable(resource, &why));
    }
    let name = resource.type_in(value["apiVersion"].as_str().unwrap_or_default());
    let (Some(fields), Some(object)) = (message(name), value.as_object_mut()) else { return Ok(()) };
    // The real type holds it by value, not by pointer, so it is always present.
    if fields.iter().any(|field| field.name == "spec") {
        let spec = object.entry("spec").or_insert(Value::Null);
        if spec.is_null() {
            *spec = Value::Object(Map::new());
        }
    }
    walk(object, fields, &resource.kind).map_err(|why| undecodable(resource, &why))
}

/// Decodes a value as a kind whose objects are never stored; returns the paths of unknown fields. The error says why
/// the value does not have the kind's type.
pub fn read_as(kind: &str, value: &mut Value) -> Result<Vec<String>, Misfit> {
    let (Some(fields), Some(object)) = (message(kind), value.as_object_mut()) else {
        return Err(Misfit::NotAnObject);
    };
    let unknown = super::unknown::drop_unknown_of(kind, object);
    walk(object, fields, kind.rsplit('.').next().unwrap_or(kind))?;
    Ok(unknown)
}

fn undecodable(resource: &Resource, why: &Misfit) -> Failure {
    let (version, kind) = (resource.storage_version(), &resource.kind);
    Failure::bad_request(format!("{kind} in version \"{}\" cannot be handled as a {kind}: {why}", version.name))
}

/// Adds the published defaults, and the fields that a type shows even if no client set them, to an object of the type
/// `name` and to its descendants.
pub fn fill_shown(value: &mut Value, name: &str) {
    let (Some(object), Some(fields)) = (value.as_object_mut(), message(name)) else { return };
    show(object, fields);
}

fn show(object: &mut Map<String, Value>, fields: &'static [Field]) {
    for field in fields {
        if let Kind::Message(below) = &field.kind
            && field.name == "<inline>"
        {
            show(object, message(below).unwrap_or_default());
            continue;
        }
        match (object.get_mut(field.name), &field.kind) {
            (Some(Value::Array(items)), Kind::Message(below)) => {
                for item in items {
                    fill_shown(item, below);
                }
            }
            (Some(Value::Object(entries)), Kind::Message(below)) if field.map => {
                entries.iter_mut().for_each(|(_, entry)| fill_shown(entry, below));
            }
            (Some(value), Kind::Message(below)) => fill_shown(value, below),
            (None, kind) => {
                let zero = match (field.absent(), kind) {
                    (Some(known), _) => known.clone(),
                    (None, _) if !field.shown => continue,
                    (None, _) if field.list || field.map || field.optional => Value::Null,
                    (None, Kind::Quantity) => Value::from("0"),
                    (None, Kind::Message(below)) => {
                        let mut inner = Map::new();
                        show(&mut inner, message(below).unwrap_or_default());
                        Value::Object(inner)
                    }
                    (None, _) => Value::Null,
                };
                object.insert(field.name.to_owned(), zero);
            }
            _ => {}
        }
    }
}

fn walk(object: &mut Map<String, Value>, fields: &[Field], at: &str) -> Result<(), Misfit> {
    for field in fields {
        if field.name == "<inline>" {
            if let Kind::Message(name) = field.kind {
                walk(object, message(name).unwrap_or_default(), at)?;
            }
            continue;
        }
        let Some(value) = object.get_mut(field.name) else { continue };
        if value.is_null() {
            object.remove(field.name);
            continue;
        }
        let wrong = |value: &Value, expected| Err(misfit(field, at, expected, value));
        if field.list {
            let Some(items) = value.as_array_mut() else { return wrong(value, "a list") };
            for item in items.iter_mut() {
                one(item, field, at)?;
            }
        } else if field.map {
            let Some(entries) = value.as_object_mut() else { return wrong(value, "an object") };
            for (_, entry) in entries.iter_mut() {
                one(entry, field, at)?;
            }
        } else {
            one(value, field, at)?;
        }
        if is_unset(value, field) {
            object.remove(field.name);
        }
    }
    Ok(())
}

/// Whether a value means "not set".
fn is_unset(value: &Value, field: &Field) -> bool {
    // Raw JSON has its own meaning, even as an empty list.
    if field.shown || field.kind == Kind::Json {
        return false;
    }
    match value {
        Value::Array(items) => items.is_empty() && !SHOWN.contains(&field.name),
        Value::Object(entries) => field.map && entries.is_empty(),
        Value::String(text) => text.is_empty() && !field.optional && field.name != "name" && field.kind == Kind::Text,
        Value::Bool(flag) => !*flag && !field.optional && field.name != "allowed",
        Value::Number(number) => number.as_i64() == Some(0) && !field.optional && field.kind == Kind::Integer,
        Value::Null => false,
    }
}

fn one(value: &mut Value, field: &Field, at: &str) -> Result<(), Misfit> {
    let expected = match &field.kind {
        Kind::Message(name) => {
            return match value {
                Value::Object(object) => {
                    walk(object, message(name).unwrap_or_default(), &format!("{at}.{}", field.name))
                }
                // A null item is an object without fields.
                Value::Null => Ok(()),
                other => Err(misfit(field, at, "an object", other)),
            };
        }
        Kind::Either(name) => {
            let fields = builtin::first(name).and_then(message).unwrap_or_default();
            let path = format!("{at}.{}", field.name);
            return match value {
                Value::Object(object) => walk(object, fields, &path),
                // A list of schemas, or of names.
                Value::Array(items) => {
                    items.iter_mut().filter_map(Value::as_object_mut).try_for_each(|item| walk(item, fields, &path))
                }
                _ => Ok(()),
            };
        }
        Kind::Double if !(value.is_number() || value.is_null()) => "a number",
        Kind::Json | Kind::Texts => return Ok(()),
        Kind::Text if !matches!(value, Value::String(_) | Value::Null) => "a text",
        Kind::Integer if !(value.is_i64() || value.is_u64() || value.is_null()) => "a number",
        Kind::Flag if !(value.is_boolean() || value.is_null()) => "true or false",
        Kind::Bytes if !value.is_null() && !value.as_str().is_some_and(is_base64) => "base64",
        Kind::Time | Kind::MicroTime if !value.is_null() => {
            let micro = field.kind == Kind::MicroTime;
            let Some(time) = value.as_str().and_then(|text| as_shown(text, micro)) else {
                return Err(misfit(field, at, "a time", value));
            };
            if let Cow::Owned(time) = time {
                *value = Value::from(time);
            }
            return Ok(());
        }
        Kind::Quantity if !value.is_null() => {
            // A number counts as its text.
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let Some(amount) = Quantity::parse(&text) else {
                let path = format!("{at}.{}", field.name);
                return Err(Misfit::Amount { path, got: value.clone() });
            };
            // Amounts in maps are those of resources.
            let amount = if field.map { amount.in_thousandths() } else { amount };
            let canonical = amount.canonical();
            if value.as_str() != Some(&canonical) {
                *value = Value::from(canonical);
            }
            return Ok(());
        }
        Kind::IntOrText if !(value.is_string() || value.is_number() || value.is_null()) => "a text or a number",
        _ => "",
    };
    if expected.is_empty() {
        if value.is_null() && field.map {
            // A missing text is an empty one.
            *value = Value::from("");
        }
        return Ok(());
    }
    Err(misfit(field, at, expected, value))
}

fn misfit(field: &Field, at: &str, expected: &'static str, got: &Value) -> Misfit {
    Misfit::Field { path: format!("{at}.{}", field.name), expected, got: got.clone() }
}

fn is_base64(text: &str) -> bool {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

/// Converts a time to the format of the API: in UTC, in whole seconds or in microseconds. `None` means that the text is
/// not a time, or that a time in microseconds does not have exactly six decimal places (`MicroTime` of apimachinery
/// reads no other form).
fn as_shown(text: &str, micro: bool) -> Option<Cow<'_, str>> {
    let time = text.parse::<jiff::Timestamp>().ok()?;
    let fraction = text.bytes().skip(SECONDS_BYTES).take_while(|byte| *byte == b'.' || byte.is_ascii_digit()).count();
    if micro && fraction != ".000000".len() {
        return None;
    }
    let canonical = SECONDS_BYTES + "Z".len() + if micro { fraction } else { 0 };
    if text.len() == canonical && text.ends_with('Z') {
        return Some(Cow::Borrowed(text));
    }
    Some(Cow::Owned(if micro { format!("{time:.6}") } else { seconds(time) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times in seconds are truncated and converted to UTC; times in microseconds need six decimal places.
    #[test]
    fn times_are_shown_in_one_form() {
        let shown = |text: &str, micro| as_shown(text, micro).map(Cow::into_owned);
        for (given, wanted) in [
            ("2024-02-03T04:05:06Z", "2024-02-03T04:05:06Z"),
            ("2024-02-03T04:05:06.789+01:00", "2024-02-03T03:05:06Z"),
            ("2024-02-03T04:05:06-11:30", "2024-02-03T15:35:06Z"),
        ] {
            assert_eq!(shown(given, false).as_deref(), Some(wanted));
        }
        assert_eq!(shown("yesterday", false), None);
        for (given, wanted) in [
            ("2024-02-03T04:05:06.000007Z", Some("2024-02-03T04:05:06.000007Z")),
            ("2024-02-03T04:05:06.100000+01:00", Some("2024-02-03T03:05:06.100000Z")),
            ("2024-02-03T04:05:06Z", None),
            ("2024-02-03T04:05:06.5Z", None),
            ("2024-02-03T04:05:06.1234567Z", None),
        ] {
            assert_eq!(shown(given, true).as_deref(), wanted, "{given}");
        }
    }
}
