//! `ResourceQuota`: how much of everything a namespace may use.

use serde_json::{Value, json};

use super::print::{AGE, NAME, Printer};
use super::{Causes, Generation, Kind, Quota};
use crate::status::Cause;

pub(super) const RESOURCE_QUOTA: Kind = Kind {
    short_names: &["quota"],
    about: "How much of everything a namespace may use.",
    status: true,
    messages: &[
        ("ResourceQuota", "1:metadata:ObjectMeta 2:spec:ResourceQuotaSpec 3:status:ResourceQuotaStatus"),
        ("ResourceQuotaSpec", "1:hard:{Q} 2:scopes:[s] 3:scopeSelector:ScopeSelector"),
        ("ScopeSelector", "1:matchExpressions:[ScopedResourceSelectorRequirement]"),
        ("ScopedResourceSelectorRequirement", "1:scopeName:s! 2:operator:s! 3:values:[s]"),
        ("ResourceQuotaStatus", "1:hard:{Q} 2:used:{Q}"),
    ],
    printer: PRINTER,
    new: |value| value["status"] = json!({}),
    check,
    generation: Generation::None,
    shown_when_deleted: true,
    quota: Quota::Name,
    ..Kind::namespaced("", &["v1"], "resourcequotas", "ResourceQuota")
};

fn check(value: &Value, causes: &mut Causes) {
    for (name, amount) in value.pointer("/spec/hard").and_then(Value::as_object).into_iter().flatten() {
        let negative =
            amount.as_str().is_some_and(|text| text.starts_with('-')) || amount.as_f64().is_some_and(|n| n < 0.0);
        if negative {
            let why = "must be greater than or equal to 0";
            causes.push(Cause::invalid(&format!("spec.hard[{name}]"), &amount.to_string(), why));
        }
    }
}

const PRINTER: Printer = Printer {
    columns: &[NAME, ("Request", "string", 0), ("Limit", "string", 0), AGE],
    cells: |row| {
        let hard = || row.at("/status/hard").and_then(Value::as_object).into_iter().flatten();
        let used = |name: &str| row.at("/status/used").and_then(|used| used[name].as_str()).unwrap_or("0");
        let part = |limits: bool| {
            let of_part = hard().filter(|(name, _)| name.starts_with("limits.") == limits);
            let each = of_part.map(|(name, hard)| format!("{name}: {}/{}", used(name), hard.as_str().unwrap_or("0")));
            Value::from(each.collect::<Vec<_>>().join(", "))
        };
        vec![row.name(), part(false), part(true), row.age()]
    },
};
