//! The columns of `kubectl get`.
//!
//! Owns which columns a resource has and what is in them. Custom resources bring their own
//! (`additionalPrinterColumns`); those of the built-in ones are the real server's, with the names that 1.33 gives them.

mod builtin;
mod cluster;
mod events;
mod jsonpath;
mod metrics;
mod network;
mod print;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::catalogue::{Column, Resource};
use super::object::meta;

/// The `columnDefinitions` of a table.
pub fn columns(resource: &Resource, custom: &[Column]) -> Vec<Value> {
    let definition = |name: &str, kind: &str, format: &str, description: &str, priority: i64| json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority});
    if !resource.custom {
        let (format, description) = (
            |name: &str| if matches!(name, "Name" | "Attacher") { "name" } else { "" },
            |name: &str| match name {
                "Name" => "Name must be unique within a namespace.",
                "Age" => "Time since creation.",
                _ => "",
            },
        );
        let all = builtin::printer(resource).columns.iter();
        return all
            .map(|(name, kind, priority)| definition(name, kind, format(name), description(name), *priority))
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

/// The cells of one row.
pub fn cells(value: &Value, resource: &Resource, custom: &[Column]) -> Vec<Value> {
    let now = Timestamp::now();
    if !resource.custom {
        return (builtin::printer(resource).cells)(&print::Row { value, now });
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
        ("date", Some(Value::String(text))) => Value::from(age(text, now)),
        ("string", Some(other @ (Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_)))) => {
            Value::from(other.to_string())
        }
        (_, Some(found)) => found.clone(),
    }
}

/// How long ago `since` was, as `kubectl` writes it: `5s`, `3m20s`, `2h`, `4d`.
fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    duration(now.as_second() - since.as_second())
}

/// A time in seconds, as `kubectl` writes it.
fn duration(seconds: i64) -> String {
    if seconds < 0 {
        return "0s".to_owned();
    }
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with = |big: i64, unit: &str, small: i64, of: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{of}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => with(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        _ => with(days / 365, "y", days % 365, "d"),
    }
}

#[cfg(test)]
mod tests;
