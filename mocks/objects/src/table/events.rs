//! The columns of events, the same for both of their APIs.

use serde_json::Value;

use super::print::{Printer, Row};

/// The columns stand in an order of their own, and the name comes last.
pub(super) const EVENT: Printer = Printer {
    columns: &[
        ("Last Seen", "string", 0),
        ("Type", "string", 0),
        ("Reason", "string", 0),
        ("Object", "string", 0),
        ("Subobject", "string", 1),
        ("Source", "string", 1),
        ("Message", "string", 0),
        ("First Seen", "string", 1),
        ("Count", "string", 1),
        ("Name", "string", 1),
    ],
    cells: event,
};

/// All cells of an event.
fn event(row: &Row<'_>) -> Vec<Value> {
    let text = |pointer: &str| row.text(pointer);
    let or = |one: &'static str, other: &'static str| if text(one).is_empty() { text(other) } else { text(one) };
    let first = or("/firstTimestamp", "/eventTime");
    let counted = |pointer: &str| row.at(pointer).and_then(Value::as_i64);
    let (last, count) = match counted("/series/count") {
        Some(count) => (text("/series/lastObservedTime"), count),
        None if text("/lastTimestamp").is_empty() => (first, counted("/count").unwrap_or(1)),
        None => (text("/lastTimestamp"), counted("/count").unwrap_or(1)),
    };
    let kind = text("/involvedObject/kind").to_lowercase();
    let name = text("/involvedObject/name");
    let object = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let source = [or("/source/component", "/reportingComponent"), or("/source/host", "/reportingInstance")];
    let source = if source[1].is_empty() { source[0].to_owned() } else { source.join(", ") };
    vec![
        super::age(last, row.now).into(),
        text("/type").into(),
        text("/reason").into(),
        object.into(),
        text("/involvedObject/fieldPath").into(),
        source.into(),
        text("/message").trim().into(),
        super::age(first, row.now).into(),
        count.into(),
        row.name(),
    ]
}
