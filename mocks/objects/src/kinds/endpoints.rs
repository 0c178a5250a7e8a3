//! `Endpoints`: the addresses of a `Service`, in the kind that `EndpointSlice` replaced.

use std::net::IpAddr;

use mock_cel::formats::{label, qualified_name, subdomain};
use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::print::{Cells, NONE, some};
use super::{Causes, Generation, Kind};
use crate::fields::{each, set};

pub(super) const ENDPOINTS: Kind = Kind {
    about: "The addresses behind a Service, in the old form.",
    cells: CELLS,
    defaults,
    check,
    generation: Generation::None,
    created_by_update: true,
    ..Kind::of("endpoints")
};

fn defaults(value: &mut Value) {
    each(value, "subsets", |subset| each(subset, "ports", |port| set(port, &[], "protocol", json!("TCP"))));
}

fn check(value: &Value, causes: &mut Causes) {
    let list = At::from("subsets");
    for (index, subset) in value["subsets"].as_array().into_iter().flatten().enumerate() {
        let at = list.item(index);
        let items = |key: &str| subset[key].as_array().map_or(&[][..], Vec::as_slice);
        let kinds = ["addresses", "notReadyAddresses"];
        if kinds.iter().all(|key| items(key).is_empty()) {
            causes.required(at, "must specify `addresses` or `notReadyAddresses`");
        }
        for key in kinds {
            let list = at.field(key);
            for (number, address) in items(key).iter().enumerate() {
                let at = list.item(number);
                let ip = address["ip"].as_str().unwrap_or_default();
                match ip.parse::<IpAddr>() {
                    Err(_) => causes.invalid_text(at.field("ip"), ip, "must be a valid IP address"),
                    Ok(known) if known.is_unspecified() || known.is_loopback() || known.is_multicast() => {
                        causes.invalid_text(at.field("ip"), ip, "may not be unspecified, loopback or multicast");
                    }
                    Ok(_) => {}
                }
                let hostname = address["hostname"].as_str().unwrap_or_default();
                if !hostname.is_empty() {
                    causes.faults(at.field("hostname"), hostname, label(hostname));
                }
                if let Some(node) = address["nodeName"].as_str() {
                    causes.faults(at.field("nodeName"), node, subdomain(node));
                }
            }
        }
        let (ports, list) = (items("ports"), at.field("ports"));
        for (number, port) in ports.iter().enumerate() {
            let (at, name) = (list.item(number), port["name"].as_str().unwrap_or_default());
            if !name.is_empty() {
                causes.faults(at.field("name"), name, label(name));
            } else if ports.len() > 1 {
                causes.required(at.field("name"), "");
            }
            causes.within(at.field("port"), Some(port["port"].as_i64().unwrap_or(0)), (1, 65535));
            causes.one_of(&port["protocol"], at.field("protocol"), &["SCTP", "TCP", "UDP"]);
            if let Some(protocol) = port["appProtocol"].as_str() {
                causes.faults(at.field("appProtocol"), protocol, qualified_name(protocol));
            }
        }
    }
}

const CELLS: Cells = |row| {
    let mut list = Vec::new();
    for subset in row.items("/subsets") {
        let addresses = || {
            let addresses = subset["addresses"].as_array().into_iter().flatten();
            addresses.map(|address| address["ip"].as_str().unwrap_or_default())
        };
        let ports = subset["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
        if ports.is_empty() {
            list.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            list.extend(addresses().map(|address| joined(address, &port["port"])));
        }
    }
    vec![row.name(), some(list, NONE), row.age()]
};

fn joined(address: &str, port: &Value) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}
