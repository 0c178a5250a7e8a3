//! `EndpointSlice`: some or all of the addresses of a `Service`.

use std::net::IpAddr;

use mock_cel::formats::subdomain;
use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::print::{Cells, UNSET, some};
use super::{Causes, Generation, Kind};
use crate::fields::{each, set, shown_empty};

pub(super) const ENDPOINT_SLICE: Kind = Kind {
    about: "Some of the addresses behind a Service.",
    cells: CELLS,
    defaults,
    check,
    fixed: &["/addressType"],
    generation: Generation::SpecAndLabels,
    ..Kind::of("endpointslices.discovery.k8s.io")
};

fn defaults(value: &mut Value) {
    each(value, "ports", |port| {
        set(port, &[], "name", json!(""));
        set(port, &[], "protocol", json!("TCP"));
    });
    for list in ["endpoints", "ports"] {
        shown_empty(value, &[], list);
    }
}

fn check(value: &Value, causes: &mut Causes) {
    let (kind, at) = (value["addressType"].as_str().unwrap_or_default(), At::from("endpoints"));
    let known = ["FQDN", "IPv4", "IPv6"];
    if kind.is_empty() {
        causes.required(At::from("addressType"), "");
    } else if !known.contains(&kind) {
        causes.unsupported(At::from("addressType"), kind, &known);
    }
    for (index, endpoint) in value["endpoints"].as_array().into_iter().flatten().enumerate() {
        let (one, addresses) = (at.item(index), endpoint["addresses"].as_array().map_or(&[][..], Vec::as_slice));
        let place = one.field("addresses");
        if addresses.is_empty() {
            causes.required(place, "must contain at least 1 address");
        }
        for (number, address) in addresses.iter().enumerate() {
            let text = address.as_str().unwrap_or_default();
            match (kind, text.parse::<IpAddr>()) {
                ("IPv4" | "IPv6", Err(_)) => {
                    let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                    causes.invalid_text(place.item(number), text, why);
                }
                ("IPv4", Ok(address)) if !address.is_ipv4() => {
                    causes.invalid_text(place.item(number), text, "must be a valid IPv4 address");
                }
                ("IPv6", Ok(address)) if !address.is_ipv6() => {
                    causes.invalid_text(place.item(number), text, "must be a valid IPv6 address");
                }
                _ => {}
            }
        }
        if let Some(node) = endpoint["nodeName"].as_str() {
            causes.faults(one.field("nodeName"), node, subdomain(node));
        }
    }
}

const CELLS: Cells = |row| {
    let ports = row.items("/ports").map(|port| match &port["port"] {
        Value::Null => "*".to_owned(),
        number => number.to_string(),
    });
    let addresses = row.items("/endpoints").flat_map(|endpoint| {
        endpoint["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
    });
    vec![
        row.name(),
        row.text("/addressType").into(),
        some(ports, UNSET),
        some(addresses.collect::<Vec<_>>(), UNSET),
        row.age(),
    ]
};
