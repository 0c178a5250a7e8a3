//! `Ingress`: routes from HTTP hosts and paths to services.

use serde_json::{Value, json};

use super::causes::unsupported;
use super::print::{NONE, Printer, load_balancer, some};
use super::{Causes, Kind};
use crate::status::Cause;

pub(super) const INGRESS: Kind = Kind {
    short_names: &["ing"],
    about: "Which HTTP hosts and paths lead to which Services.",
    status: true,
    messages: &[
        "Ingress 1:metadata:ObjectMeta 2:spec:IngressSpec 3:status:IngressStatus",
        "IngressSpec 1:defaultBackend:IngressBackend 2:tls:[IngressTLS] 3:rules:[IngressRule] 4:ingressClassName:s?",
        "IngressBackend 3:resource:TypedLocalObjectReference 4:service:IngressServiceBackend",
        "IngressServiceBackend 1:name:s! 2:port:ServiceBackendPort",
        "ServiceBackendPort 1:name:s 2:number:i",
        "IngressTLS 1:hosts:[s] 2:secretName:s",
        "IngressRule 1:host:s 2:<inline>:IngressRuleValue",
        "IngressRuleValue 1:http:HTTPIngressRuleValue",
        "HTTPIngressRuleValue 1:paths:[HTTPIngressPath]!",
        "HTTPIngressPath 1:path:s 2:backend:IngressBackend 3:pathType:s?",
        "IngressStatus 1:loadBalancer:LoadBalancerStatus",
    ],
    printer: PRINTER,
    new: |value| value["status"] = json!({"loadBalancer": {}}),
    check,
    ..Kind::namespaced("networking.k8s.io", &["v1"], "ingresses", "Ingress")
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

const PRINTER: Printer = Printer {
    columns: "Name, Class, Hosts, Address, Ports, Age",
    cells: |row| {
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
    },
};
