//! One metric of an autoscaler in the words of `v1` and of `v2`.
//!
//! Owns the table of fields, for what is wanted and for what is measured, and the order of fields in the texts of `v1`.

use serde_json::{Map, Value, json};

/// What a metric may be about, with its fields: `(name in v1, place in v2, whether v1 always shows it)`.
pub(super) type Sources = &'static [(&'static str, &'static [(&'static str, &'static str, bool)])];

/// The metrics of a specification.
pub(super) const WANTED: Sources = &[
    (
        "object",
        &[
            ("target", "/describedObject", true),
            ("metricName", "/metric/name", true),
            ("targetValue", "/target/value", true),
            ("selector", "/metric/selector", false),
            ("averageValue", "/target/averageValue", false),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name", true),
            ("targetAverageValue", "/target/averageValue", true),
            ("selector", "/metric/selector", false),
        ],
    ),
    (
        "resource",
        &[
            ("name", "/name", true),
            ("targetAverageUtilization", "/target/averageUtilization", false),
            ("targetAverageValue", "/target/averageValue", false),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name", true),
            ("targetAverageUtilization", "/target/averageUtilization", false),
            ("targetAverageValue", "/target/averageValue", false),
            ("container", "/container", true),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name", true),
            ("metricSelector", "/metric/selector", false),
            ("targetValue", "/target/value", false),
            ("targetAverageValue", "/target/averageValue", false),
        ],
    ),
];

/// The metrics of a status.
pub(super) const CURRENT: Sources = &[
    (
        "object",
        &[
            ("target", "/describedObject", true),
            ("metricName", "/metric/name", true),
            ("currentValue", "/current/value", true),
            ("selector", "/metric/selector", false),
            ("averageValue", "/current/averageValue", false),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name", true),
            ("currentAverageValue", "/current/averageValue", true),
            ("selector", "/metric/selector", false),
        ],
    ),
    (
        "resource",
        &[
            ("name", "/name", true),
            ("currentAverageUtilization", "/current/averageUtilization", false),
            ("currentAverageValue", "/current/averageValue", true),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name", true),
            ("currentAverageUtilization", "/current/averageUtilization", false),
            ("currentAverageValue", "/current/averageValue", true),
            ("container", "/container", true),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name", true),
            ("metricSelector", "/metric/selector", false),
            ("currentValue", "/current/value", true),
            ("currentAverageValue", "/current/averageValue", false),
        ],
    ),
];

/// Go writes the fields of a structure as they are declared: those of references and of selectors.
const ORDER: &[&str] = &["kind", "name", "apiVersion", "matchLabels", "matchExpressions"];
/// An amount that is always there.
const NOTHING: &str = "0";

/// The text of a metric in `v1`.
pub(super) fn older(metric: &Value, sources: Sources) -> String {
    let mut parts = vec![format!("\"type\":{}", metric["type"])];
    for (source, fields) in sources.iter().filter(|(source, _)| metric[*source].is_object()) {
        let mut inner = Vec::new();
        for (older, newer, shown) in *fields {
            let found = metric[*source].pointer(newer).filter(|value| !value.is_null());
            match found {
                Some(value @ Value::Object(_)) => inner.push(format!("\"{older}\":{}", in_order(value, ORDER))),
                Some(value) => inner.push(format!("\"{older}\":{value}")),
                None if *shown && is_amount(older) => inner.push(format!("\"{older}\":\"{NOTHING}\"")),
                None => {}
            }
        }
        parts.push(format!("\"{source}\":{{{}}}", inner.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

/// A metric of `v1` in `v2`.
pub(super) fn newer(metric: &Value, sources: Sources) -> Value {
    let mut out = json!({"type": metric["type"]});
    for (source, fields) in sources.iter().filter(|(source, _)| metric[*source].is_object()) {
        let given = &metric[*source];
        let mut made = json!({});
        for (older, newer, shown) in *fields {
            // One of two amounts is always there in v1, also when the other one is meant.
            let unmeant = *shown && given[*older] == NOTHING && given["averageValue"].is_string();
            if !given[*older].is_null() && !unmeant {
                place(&mut made, newer, given[*older].clone());
            }
        }
        if let Some(target) = made.get_mut("target").and_then(Value::as_object_mut) {
            let kind = [("averageUtilization", "Utilization"), ("averageValue", "AverageValue")];
            let kind = kind.iter().find(|(field, _)| target.contains_key(*field)).map_or("Value", |(_, kind)| kind);
            target.insert("type".to_owned(), Value::from(kind));
        }
        out[*source] = made;
    }
    out
}

/// An object as text, with these fields first.
pub(super) fn in_order(value: &Value, first: &[&str]) -> String {
    let Some(fields) = value.as_object() else { return value.to_string() };
    let known = first.iter().filter_map(|key| fields.get_key_value(*key));
    let others = fields.iter().filter(|(key, _)| !first.contains(&key.as_str()));
    let parts: Vec<String> = known.chain(others).map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", parts.join(","))
}

fn is_amount(older: &str) -> bool {
    older.ends_with("Value")
}

/// Sets a value at a place, making the objects on the way.
fn place(value: &mut Value, pointer: &str, new: Value) {
    let mut at = value;
    for part in pointer.split('/').filter(|part| !part.is_empty()) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[part];
    }
    *at = new;
}
