//! `Endpoints`: the addresses of a `Service`, in the old form.

use serde_json::{Value, json};

use super::print::{NONE, Printer, some};
use super::{Generation, Kind};
use crate::fields::{each, set};

pub(super) const ENDPOINTS: Kind = Kind {
    short_names: &["ep"],
    about: "The addresses behind a Service, in the old form.",
    messages: &[
        "Endpoints 1:metadata:ObjectMeta 2:subsets:[EndpointSubset]",
        "EndpointSubset 1:addresses:[EndpointAddress] 2:notReadyAddresses:[EndpointAddress] 3:ports:[EndpointPort]",
        "EndpointAddress 1:ip:s! 2:targetRef:ObjectReference 3:hostname:s 4:nodeName:s?",
        "EndpointPort 1:name:s 2:port:i! 3:protocol:s 4:appProtocol:s?",
    ],
    printer: PRINTER,
    defaults,
    generation: Generation::None,
    created_by_update: true,
    ..Kind::namespaced("", &["v1"], "endpoints", "Endpoints")
};

fn defaults(value: &mut Value) {
    each(value, "subsets", |subset| each(subset, "ports", |port| set(port, &[], "protocol", json!("TCP"))));
}

const PRINTER: Printer = Printer {
    columns: "Name, Endpoints, Age",
    cells: |row| {
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
    },
};

fn joined(address: &str, port: &Value) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}
