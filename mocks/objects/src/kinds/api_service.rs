//! `APIService`: who serves a version of a group.

use serde_json::{Value, json};

use super::print::{AGE, NAME, Printer};
use super::{Generation, Kind};
use crate::fields::set;

pub(super) const API_SERVICE: Kind = Kind {
    categories: &["api-extensions"],
    status: true,
    messages: &[
        ("APIService", "1:metadata:ObjectMeta 2:spec:APIServiceSpec 3:status:APIServiceStatus"),
        (
            "APIServiceSpec",
            "1:service:ApiServiceReference 2:group:s 3:version:s 4:insecureSkipTLSVerify:b 5:caBundle:B \
             7:groupPriorityMinimum:i! 8:versionPriority:i!",
        ),
        ("ApiServiceReference", "1:namespace:s 2:name:s 3:port:i?"),
        ("APIServiceStatus", "1:conditions:[APIServiceCondition]"),
        ("APIServiceCondition", "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s"),
    ],
    printer: PRINTER,
    defaults,
    new: |value| value["status"] = json!({}),
    generation: Generation::None,
    ..Kind::cluster("apiregistration.k8s.io", &["v1"], "apiservices", "APIService")
};

fn defaults(value: &mut Value) {
    if value.pointer("/spec/service").is_some_and(Value::is_object) {
        set(value, &["spec", "service"], "port", json!(443));
    }
}

const PRINTER: Printer = Printer {
    columns: &[NAME, ("Service", "string", 0), ("Available", "string", 0), AGE],
    cells: |row| {
        let service = match row.text("/spec/service/name") {
            "" => "Local".to_owned(),
            name => format!("{}/{name}", row.text("/spec/service/namespace")),
        };
        let available = row.condition("Available").map_or_else(
            || "Unknown".to_owned(),
            |condition| {
                let text = |key: &str| condition[key].as_str().unwrap_or_default();
                match text("status") {
                    "True" => "True".to_owned(),
                    other => format!("{other} ({})", text("reason")),
                }
            },
        );
        vec![row.name(), service.into(), available.into(), row.age()]
    },
};
