//! `NetworkPolicy`: the allowed connections to and from pods.

use serde_json::{Value, json};

use super::causes::unsupported;
use super::print::selector;
use super::{Causes, Kind, texts};
use crate::fields::{each, set};
use crate::status::Cause;

pub(super) const NETWORK_POLICY: Kind = Kind {
    about: "Which connections to and from pods are allowed.",
    cells: |row| vec![row.name(), selector(row.at("/spec/podSelector")), row.age()],
    defaults,
    check: |value, causes| check_spec(&value["spec"], causes),
    ..Kind::of("networkpolicies.networking.k8s.io")
};

fn defaults(value: &mut Value) {
    let Some(spec) = value.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    set(spec, &[], "policyTypes", if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    for list in ["ingress", "egress"] {
        each(spec, list, |rule| each(rule, "ports", |port| set(port, &[], "protocol", json!("TCP"))));
    }
}

fn check_spec(spec: &Value, causes: &mut Causes) {
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in spec[list].as_array().into_iter().flatten().enumerate() {
            for (number, port) in rule["ports"].as_array().into_iter().flatten().enumerate() {
                check_port(port, &format!("spec.{list}[{index}].ports[{number}]"), causes);
            }
            for (number, peer) in rule[peers].as_array().into_iter().flatten().enumerate() {
                let at = format!("spec.{list}[{index}].{peers}[{number}]");
                if peer.as_object().is_none_or(serde_json::Map::is_empty) {
                    causes.push(Cause::required(&at, "must specify a peer"));
                }
                if let Some(cidr) = peer.pointer("/ipBlock/cidr").and_then(Value::as_str).filter(|cidr| !is_cidr(cidr))
                {
                    let why = "not a valid CIDR";
                    causes.push(Cause::invalid(&format!("{at}.ipBlock.cidr"), &format!("\"{cidr}\""), why));
                }
            }
        }
    }
    for (index, kind) in spec["policyTypes"].as_array().into_iter().flatten().enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        if !matches!(kind, "Ingress" | "Egress") {
            causes.push(unsupported(&format!("spec.policyTypes[{index}]"), kind, "\"Egress\", \"Ingress\""));
        }
    }
}

fn check_port(port: &Value, at: &str, causes: &mut Causes) {
    let protocol = port["protocol"].as_str().unwrap_or("TCP");
    if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
        causes.push(unsupported(&format!("{at}.protocol"), protocol, "\"TCP\", \"UDP\", \"SCTP\""));
    }
    let mut refuse = |field: &str, shown: &dyn std::fmt::Display, why: &str| {
        causes.push(Cause::invalid(&format!("{at}.{field}"), &shown.to_string(), why));
    };
    let is_number = |port: i64| (1..=65535).contains(&port);
    let range = "must be between 1 and 65535, inclusive";
    let end = port["endPort"].as_i64();
    match (&port["port"], port["port"].as_i64()) {
        (Value::Null, _) => {
            if let Some(end) = end {
                refuse("endPort", &end, "may not be specified when `port` is not specified");
            }
        }
        (_, Some(first)) => {
            if !is_number(first) {
                refuse("port", &first, range);
            }
            if end.is_some_and(|end| end < first) {
                // A real server shows the first port.
                refuse("endPort", &first, "must be greater than or equal to `port`");
            }
            if let Some(end) = end.filter(|end| !is_number(*end)) {
                refuse("endPort", &end, range);
            }
        }
        (name, None) => {
            if let Some(end) = end {
                refuse("endPort", &end, "may not be specified when `port` is non-numeric");
            }
            for why in texts::port_name(name.as_str().unwrap_or_default()) {
                refuse("port", name, &why);
            }
        }
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    match (address.parse::<std::net::IpAddr>(), bits.parse::<u8>()) {
        (Ok(address), Ok(bits)) => bits <= if address.is_ipv4() { 32 } else { 128 },
        _ => false,
    }
}
