//! `Ingress`: routes from HTTP hosts and paths to services.

use mock_cel::formats::subdomain;
use serde_json::Value;

use super::at::At;
use super::causes::{Refuse, unsupported};
use super::print::{Cells, NONE, load_balancer, some};
use super::texts::port_name;
use super::{Causes, Kind};
use crate::status::Cause;

pub(super) const INGRESS: Kind = Kind {
    about: "Which HTTP hosts and paths lead to which Services.",
    cells: CELLS,
    check,
    ..Kind::of("ingresses.networking.k8s.io")
};

fn check(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    let rules = spec["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rules.is_empty() && spec["defaultBackend"].is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", "null", why));
    }
    if spec["defaultBackend"].is_object() {
        check_backend(&spec["defaultBackend"], At::from("spec.defaultBackend"), causes);
    }
    for (index, rule) in rules.iter().enumerate() {
        let Some(http) = rule.get("http") else { continue };
        let at = format!("spec.rules[{index}].http.paths");
        let paths = http["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
        if paths.is_empty() {
            causes.push(Cause::required(&at, ""));
        }
        for (number, path) in paths.iter().enumerate() {
            let at = format!("{at}[{number}]");
            let text = path["path"].as_str().unwrap_or_default();
            match path["pathType"].as_str() {
                None => causes.push(Cause::required(&format!("{at}.pathType"), "pathType must be specified")),
                Some("Exact" | "Prefix") if !text.starts_with('/') => {
                    let why = "must be an absolute path";
                    causes.push(Cause::invalid(&format!("{at}.path"), &format!("\"{text}\""), why));
                }
                Some("Exact" | "Prefix" | "ImplementationSpecific") => {}
                Some(other) => {
                    let allowed = "\"Exact\", \"ImplementationSpecific\", \"Prefix\"";
                    causes.push(unsupported(&format!("{at}.pathType"), other, allowed));
                }
            }
            check_backend(&path["backend"], At::from(&at).field("backend"), causes);
        }
    }
}

fn check_backend(backend: &Value, at: At<'_>, causes: &mut Causes) {
    let service = &backend["service"];
    match (backend["resource"].is_object(), service.is_object()) {
        (true, true) => causes.invalid_text(at, "", "cannot set both resource and service backends"),
        (true, false) => check_reference(&backend["resource"], at.field("resource"), causes),
        (false, false) => causes.invalid_text(at, "", "resource or service backend is required"),
        (false, true) => {
            let of = at.field("service");
            let name = causes.text_in(service, "name", of);
            if !name.is_empty() && !is_service_name(name) {
                causes.invalid_text(of.field("name"), name, SERVICE_NAME);
            }
            let (port, below) = (&service["port"], of.field("port"));
            let (name, number) = (port["name"].as_str().unwrap_or_default(), port["number"].as_i64().unwrap_or(0));
            match (name.is_empty(), number) {
                (false, 0) => causes.faults(below.field("name"), name, port_name(name)),
                (false, _) => causes.invalid_text(at, "", "cannot set both port name & port number"),
                (true, 0) => causes.required(at, "port name or number is required"),
                (true, number) => causes.within(below.field("number"), Some(number), (1, 65535)),
            }
        }
    }
}

/// Whether a text is a DNS label that begins with a letter (RFC 1035).
fn is_service_name(name: &str) -> bool {
    mock_cel::formats::is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())
}

const SERVICE_NAME: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                            alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
                            'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Checks a reference to an object of any kind.
pub(super) fn check_reference(reference: &Value, at: At<'_>, causes: &mut Causes) {
    if let Some(group) = reference["apiGroup"].as_str() {
        causes.faults(at.field("apiGroup"), group, subdomain(group));
    }
    for key in ["kind", "name"] {
        let text = causes.text_in(reference, key, at);
        if matches!(text, "." | "..") || text.contains(['/', '%']) {
            causes.invalid_text(at.field(key), text, "may not contain '/' or '%', and may not be '.' or '..'");
        }
    }
}

const CELLS: Cells = |row| {
    let hosts = row.items("/spec/rules").filter_map(|rule| rule["host"].as_str());
    let hosts = hosts.filter(|host| !host.is_empty()).map(str::to_owned);
    vec![
        row.name(),
        row.text_or("/spec/ingressClassName", NONE),
        some(hosts, "*"),
        load_balancer(row).into(),
        if row.items("/spec/tls").len() == 0 { "80" } else { "80, 443" }.into(),
        row.age(),
    ]
};
