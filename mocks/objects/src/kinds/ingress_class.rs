//! `IngressClass`: names the controller of `Ingress` objects.

use serde_json::{Value, json};

use super::Kind;
use super::causes::required;
use super::print::{Cells, NONE};
use crate::fields::set;

pub(super) const INGRESS_CLASS: Kind = Kind {
    cells: CELLS,
    defaults,
    check: |value, causes| required(value, "/spec/controller", causes),
    ..Kind::of("ingressclasses.networking.k8s.io")
};

fn defaults(value: &mut Value) {
    if value.pointer("/spec/parameters").is_some_and(Value::is_object) {
        set(value, &["spec", "parameters"], "scope", json!("Cluster"));
    }
}

const CELLS: Cells = |row| {
    let text = |key: &str| row.text(&format!("/spec/parameters/{key}"));
    let parameters = match (text("kind"), text("apiGroup")) {
        ("", _) => NONE.to_owned(),
        (kind, "") => format!("{kind}/{}", text("name")),
        (kind, group) => format!("{kind}.{group}/{}", text("name")),
    };
    vec![row.name(), row.text("/spec/controller").into(), parameters.into(), row.age()]
};
