//! `IngressClass`: names the controller of `Ingress` objects.

use serde_json::{Value, json};

use super::Kind;
use super::causes::required;
use super::print::{NONE, Printer};
use crate::fields::set;

pub(super) const INGRESS_CLASS: Kind = Kind {
    messages: &[
        "IngressClass 1:metadata:ObjectMeta 2:spec:IngressClassSpec",
        "IngressClassSpec 1:controller:s 2:parameters:IngressClassParametersReference",
        "IngressClassParametersReference 1:apiGroup:s? 2:kind:s! 3:name:s! 4:scope:s? 5:namespace:s?",
    ],
    printer: PRINTER,
    defaults,
    check: |value, causes| required(value, "/spec/controller", causes),
    ..Kind::cluster("networking.k8s.io", &["v1"], "ingressclasses", "IngressClass")
};

fn defaults(value: &mut Value) {
    if value.pointer("/spec/parameters").is_some_and(Value::is_object) {
        set(value, &["spec", "parameters"], "scope", json!("Cluster"));
    }
}

const PRINTER: Printer = Printer {
    columns: "Name, Controller, Parameters, Age",
    cells: |row| {
        let text = |key: &str| row.text(&format!("/spec/parameters/{key}"));
        let parameters = match (text("kind"), text("apiGroup")) {
            ("", _) => NONE.to_owned(),
            (kind, "") => format!("{kind}/{}", text("name")),
            (kind, group) => format!("{kind}.{group}/{}", text("name")),
        };
        vec![row.name(), row.text("/spec/controller").into(), parameters.into(), row.age()]
    },
};
