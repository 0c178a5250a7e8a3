//! Checks a value against a schema, with the real server's messages.
//!
//! Owns the causes of schema errors. An update does not check unchanged values of an object again ("Validation
//! ratcheting"), so that old objects can be updated after their definition became stricter.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::judge::Counterparts;
use super::{Format, Kind, ListType, Schema};
use crate::status::Cause;

/// Maximum number of causes that are collected, so that the size of the answer is bounded.
const CAUSES_MAX: usize = 64;

impl Schema {
    /// The schema errors in an object; `old` is the object's state before an update.
    pub fn check(&self, value: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.check_at(value, old, "", &mut causes);
        causes
    }

    fn check_at(&self, value: &Value, old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
        if causes.len() >= CAUSES_MAX || old == Some(value) || (value.is_null() && self.nullable) {
            return;
        }
        if !self.is_of_kind(value) {
            causes.push(wrong_type(path, self.kind, value));
            return;
        }
        if let Some(allowed) = self.allowed.as_ref().filter(|allowed| !allowed.contains(value)) {
            let list: Vec<String> = allowed.iter().map(Value::to_string).collect();
            let message = format!("Unsupported value: {value}: supported values: {}", list.join(", "));
            causes.push(Cause { reason: "FieldValueNotSupported", field: shown(path), message });
        }
        match value {
            Value::Object(object) => self.check_object(object, old.and_then(Value::as_object), path, causes),
            Value::Array(items) => self.check_list(items, old.and_then(Value::as_array), path, causes),
            Value::String(text) => self.check_text(text, path, causes),
            Value::Number(_) => self.check_number(value, path, causes),
            _ => {}
        }
        self.check_combined(value, path, causes);
    }

    fn is_of_kind(&self, value: &Value) -> bool {
        match self.kind {
            Kind::Any => !value.is_null() || self.preserves,
            Kind::Object => value.is_object(),
            Kind::Array => value.is_array(),
            Kind::Text => value.is_string(),
            // 1.0 is an integer in JSON.
            Kind::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Kind::Number => value.is_number(),
            Kind::Boolean => value.is_boolean(),
            Kind::IntOrString => value.is_string() || value.is_i64() || value.is_u64(),
        }
    }

    fn check_object(
        &self,
        object: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
        path: &str,
        causes: &mut Vec<Cause>,
    ) {
        for name in self.required.iter().filter(|name| !object.contains_key(*name)) {
            causes.push(Cause::required(&join(path, name), ""));
        }
        let count = object.len() as u64;
        if let Some(min) = self.bounds.properties.0.filter(|min| count < *min) {
            causes.push(in_body(path, &count.to_string(), &format!("should have at least {min} properties")));
        }
        if let Some(max) = self.bounds.properties.1.filter(|max| count > *max) {
            causes.push(too_many(path, count, &format!("must have at most {max} items")));
        }
        for (name, value) in object {
            // The server itself checks the metadata.
            if (path.is_empty() || self.embedded) && name == "metadata" {
                continue;
            }
            let Some(schema) = self.member(name) else { continue };
            schema.check_at(value, old.and_then(|old| old.get(name)), &join(path, name), causes);
        }
    }

    fn check_list(&self, items: &[Value], old: Option<&Vec<Value>>, path: &str, causes: &mut Vec<Cause>) {
        let count = items.len() as u64;
        if let Some(min) = self.bounds.items.0.filter(|min| count < *min) {
            causes.push(in_body(path, &count.to_string(), &format!("should have at least {min} items")));
        }
        if let Some(max) = self.bounds.items.1.filter(|max| count > *max) {
            causes.push(too_many(path, count, &format!("must have at most {max} items")));
            return;
        }
        self.check_duplicates(items, path, causes);
        let Some(schema) = &self.items else { return };
        let before = Counterparts::of(self, old);
        for (index, item) in items.iter().enumerate() {
            // Only a key identifies an item of the old list. In any other changed list all items count as new.
            let partner = before.as_ref().and_then(|before| before.find(item));
            schema.check_at(item, partner, &format!("{path}[{index}]"), causes);
        }
    }

    fn check_duplicates(&self, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
        let keys = match &self.list {
            ListType::Atomic => return,
            ListType::Set => None,
            ListType::Map(keys) => Some(keys),
        };
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let key: Value = match keys {
                Some(keys) => keys.iter().map(|key| (key.clone(), item[key].clone())).collect(),
                None => item.clone(),
            };
            if !seen.insert(key.to_string()) {
                let (field, message) = (format!("{path}[{index}]"), format!("Duplicate value: {key}"));
                causes.push(Cause { reason: "FieldValueDuplicate", field, message });
            }
        }
    }

    fn check_text(&self, text: &str, path: &str, causes: &mut Vec<Cause>) {
        let quoted = Value::from(text).to_string();
        let length = text.chars().count() as u64;
        if let Some(min) = self.bounds.length.0.filter(|min| length < *min) {
            causes.push(in_body(path, &quoted, &format!("should be at least {min} chars long")));
        }
        if let Some(max) = self.bounds.length.1.filter(|max| length > *max) {
            let message = format!("Too long: may not be more than {max} bytes");
            causes.push(Cause { reason: "FieldValueTooLong", field: shown(path), message });
        }
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            causes.push(in_body(path, &quoted, &format!("should match '{}'", pattern.as_str())));
        }
        if let Some(format) = self.format.filter(|format| !format.is(text)) {
            causes.push(in_body(path, &quoted, &format!("must be of type {}: {quoted}", format.name())));
        }
    }

    fn check_number(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let Some(number) = value.as_f64() else { return };
        let bounds = &self.bounds;
        let mut refuse = |why: String| causes.push(in_body(path, &value.to_string(), &why));
        if let Some(limit) = &bounds.min {
            let min = limit.as_f64().unwrap_or(f64::MIN);
            if bounds.min_excluded && number <= min {
                refuse(format!("should be greater than {limit}"));
            } else if number < min {
                refuse(format!("should be greater than or equal to {limit}"));
            }
        }
        if let Some(limit) = &bounds.max {
            let max = limit.as_f64().unwrap_or(f64::MAX);
            if bounds.max_excluded && number >= max {
                refuse(format!("should be less than {limit}"));
            } else if number > max {
                refuse(format!("should be less than or equal to {limit}"));
            }
        }
        if let Some(of) = bounds.multiple_of.filter(|of| *of != 0.0 && (number / of).fract() != 0.0) {
            refuse(format!("should be a multiple of {of}"));
        }
        if self.format == Some(Format::Int32) && value.as_i64().is_none_or(|number| i32::try_from(number).is_err()) {
            refuse(format!("must be of type int32: {value}"));
        }
    }

    fn check_combined(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        for schema in &self.all_of {
            schema.check_at(value, None, path, causes);
        }
        let fits = |schema: &Self| {
            let mut below = Vec::new();
            schema.check_at(value, None, path, &mut below);
            below.is_empty()
        };
        let mut refuse = |why: &str| causes.push(in_body(path, &value.to_string(), why));
        if !self.any_of.is_empty() && !self.any_of.iter().any(fits) {
            refuse("must validate at least one schema (anyOf)");
        }
        if !self.one_of.is_empty() && self.one_of.iter().filter(|schema| fits(schema)).count() != 1 {
            refuse("must validate one and only one schema (oneOf)");
        }
        if self.not.as_deref().is_some_and(fits) {
            refuse("must not validate the schema (not)");
        }
    }
}

fn wrong_type(path: &str, kind: Kind, value: &Value) -> Cause {
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let wanted = match kind {
        Kind::Any => "any",
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::Text => "string",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        Kind::IntOrString => "integer,string",
    };
    let cause = in_body(path, &format!("\"{is}\""), &format!("must be of type {wanted}: \"{is}\""));
    Cause { reason: "FieldValueTypeInvalid", ..cause }
}

/// A cause such as `spec.replicas in body should be less than or equal to 10`.
fn in_body(path: &str, value: &str, why: &str) -> Cause {
    let field = shown(path);
    Cause::invalid(&field, value, &format!("{field} in body {why}"))
}

fn too_many(path: &str, count: u64, why: &str) -> Cause {
    Cause { reason: "FieldValueTooMany", field: shown(path), message: format!("Too many: {count}: {why}") }
}

/// A path as error messages show it; the real server shows the root as `<nil>`.
fn shown(path: &str) -> String {
    if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
