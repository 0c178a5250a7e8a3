//! The column `Targets` of a `HorizontalPodAutoscaler`: each target with its last measured value.

use serde_json::Value;

use crate::kinds::print::{NONE, Row};

/// Maximum number of targets that one cell lists.
const LISTED: usize = 2;

pub(super) fn targets(row: &Row<'_>) -> Value {
    let current: Vec<&Value> = row.items("/status/currentMetrics").collect();
    let all: Vec<String> = row
        .items("/spec/metrics")
        .enumerate()
        .map(|(index, metric)| one(metric, current.get(index).copied()))
        .collect();
    if all.is_empty() {
        return NONE.into();
    }
    let shown = all[..all.len().min(LISTED)].join(", ");
    Value::from(match all.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    })
}

/// The text of one metric: its target, and its current value if the status contains a metric of the same type.
fn one(metric: &Value, current: Option<&Value>) -> String {
    let (kind, source) = match metric["type"].as_str().unwrap_or_default() {
        "Resource" => ("resource", &metric["resource"]),
        "ContainerResource" => ("containerResource", &metric["containerResource"]),
        "Pods" => ("pods", &metric["pods"]),
        "Object" => ("object", &metric["object"]),
        "External" => ("external", &metric["external"]),
        _ => return "<unknown type>".to_owned(),
    };
    let target = &source["target"];
    let measured = current.map(|current| &current[kind]["current"]);
    let now = |field: &str| match measured.map(|measured| &measured[field]) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => format!("{number}%"),
        _ => "<unknown>".to_owned(),
    };
    let text = |field: &str| target[field].as_str();
    let values = match (text("averageValue"), text("value"), kind) {
        (Some(average), _, "object" | "external") => format!("{}/{average} (avg)", now("averageValue")),
        (Some(average), ..) => format!("{}/{average}", now("averageValue")),
        (None, _, "resource" | "containerResource") => {
            let share = target["averageUtilization"].as_i64().map_or("<auto>".to_owned(), |share| format!("{share}%"));
            format!("{}/{share}", now("averageUtilization"))
        }
        (None, value, _) => format!("{}/{}", now("value"), value.unwrap_or("<unset>")),
    };
    match kind {
        "resource" | "containerResource" => format!("{}: {values}", source["name"].as_str().unwrap_or_default()),
        _ => values,
    }
}
