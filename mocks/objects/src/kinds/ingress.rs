//! `Ingress`: routes from HTTP hosts and paths to services.

use serde_json::Value;

use super::causes::unsupported;
use super::print::{Cells, NONE, load_balancer, some};
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
            if path["backend"]["service"]["name"].as_str().is_some_and(str::is_empty) {
                causes.push(Cause::required(&format!("{at}.backend.service.name"), ""));
            }
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
