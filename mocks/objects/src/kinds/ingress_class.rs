//! `IngressClass`: names the controller of `Ingress` objects.

use mock_cel::formats::{label, subdomain};
use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::ingress::check_reference;
use super::print::{Cells, NONE};
use super::{Causes, Kind};
use crate::fields::set;

pub(super) const INGRESS_CLASS: Kind =
    Kind { cells: CELLS, defaults, check, ..Kind::of("ingressclasses.networking.k8s.io") };

fn defaults(value: &mut Value) {
    if value.pointer("/spec/parameters").is_some_and(Value::is_object) {
        set(value, &["spec", "parameters"], "scope", json!("Cluster"));
    }
}

/// Longest name of a controller in bytes.
const CONTROLLER_MAX_BYTES: usize = 250;

fn check(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], At::from("spec"));
    let (controller, place) = (causes.text_in(spec, "controller", at), at.field("controller"));
    if controller.len() > CONTROLLER_MAX_BYTES {
        causes.too_long(place, CONTROLLER_MAX_BYTES);
    }
    match controller.split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            causes.faults(place, domain, subdomain(domain));
        }
        _ if controller.is_empty() => {}
        _ => causes.invalid_text(place, controller, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
    let (parameters, at) = (&spec["parameters"], at.field("parameters"));
    if !parameters.is_object() {
        return;
    }
    check_reference(parameters, at, causes);
    match (parameters["scope"].as_str().unwrap_or_default(), parameters["namespace"].as_str()) {
        ("Namespace", None) => causes.required(at.field("namespace"), "`parameters.scope` is set to 'Namespace'"),
        ("Namespace", Some(namespace)) => causes.faults(at.field("namespace"), namespace, label(namespace)),
        ("Cluster", Some(_)) => causes.forbidden(at.field("namespace"), "`parameters.scope` is set to 'Cluster'"),
        ("Cluster", None) => {}
        (other, _) => causes.unsupported(at.field("scope"), other, &["Cluster", "Namespace"]),
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
