//! `Endpoints`: the addresses of a `Service`, in the kind that `EndpointSlice` replaced.

use serde_json::{Value, json};

use super::print::{Cells, NONE, some};
use super::{Generation, Kind};
use crate::fields::{each, set};

pub(super) const ENDPOINTS: Kind = Kind {
    about: "The addresses behind a Service, in the old form.",
    cells: CELLS,
    defaults,
    generation: Generation::None,
    created_by_update: true,
    ..Kind::of("endpoints")
};

fn defaults(value: &mut Value) {
    each(value, "subsets", |subset| each(subset, "ports", |port| set(port, &[], "protocol", json!("TCP"))));
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
