//! The columns of `kubectl get`.
//!
//! Owns the choice of a resource's columns, and their cells. Custom resources define their columns in
//! `additionalPrinterColumns`; the module `builtin` has the columns of built-in resources.

mod jsonpath;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::catalogue::{Column, Resource};
use super::fields::meta;
use super::kinds::print;

pub fn columns(resource: &Resource, custom: &[Column]) -> Vec<Value> {
    let definition = |name: &str, kind: &str, format: &str, description: &str, priority: i64| json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority});
    if !resource.custom {
        let description = |name: &str| match name {
            "Name" => "Name must be unique within a namespace.",
            "Age" => "Time since creation.",
            _ => "",
        };
        let version = resource.published.and_then(|published| published.versions.first());
        let all = version.into_iter().flat_map(|version| &version.columns);
        return all
            .map(|(name, kind, format, priority)| definition(name, kind, format, description(name), *priority))
            .collect();
    }
    let mut columns = vec![definition("Name", "string", "name", "Name must be unique within a namespace.", 0)];
    for column in custom {
        let Column { name, kind, format, description, priority, .. } = column;
        columns.push(definition(name, kind, format, description, *priority));
    }
    if custom.is_empty() {
        columns.push(definition("Age", "date", "", "Time since creation.", 0));
    }
    columns
}

pub fn cells(value: &Value, resource: &Resource, custom: &[Column]) -> Vec<Value> {
    let now = Timestamp::now();
    if !resource.custom {
        return (resource.rules.cells)(&print::Row { value, now });
    }
    let mut cells = vec![Value::from(meta(value, "name"))];
    cells.extend(custom.iter().map(|column| cell(value, column, now)));
    if custom.is_empty() {
        // The client prints dates of custom resources itself.
        cells.push(Value::from(meta(value, "creationTimestamp")));
    }
    cells
}

fn cell(value: &Value, column: &Column, now: Timestamp) -> Value {
    let found = jsonpath::find(value, &column.path);
    match (column.kind.as_str(), found) {
        (_, None) => Value::Null,
        ("date", Some(Value::String(text))) => Value::from(print::age(text, now)),
        ("string", Some(other @ (Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_)))) => {
            Value::from(other.to_string())
        }
        (_, Some(found)) => found.clone(),
    }
}

#[cfg(test)]
mod tests;
