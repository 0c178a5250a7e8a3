//! `EndpointSlice`: some of the addresses of a `Service`.

use serde_json::{Value, json};

use super::print::{Printer, UNSET, some};
use super::{Generation, Kind};
use crate::fields::{each, set, shown_empty};

pub(super) const ENDPOINT_SLICE: Kind = Kind {
    about: "Some of the addresses behind a Service.",
    messages: &[
        "EndpointSlice 1:metadata:ObjectMeta 2:endpoints:[Endpoint]! 3:ports:[EndpointSlicePort]! 4:addressType:s!",
        "Endpoint 1:addresses:[s]! 2:conditions:EndpointConditions 3:hostname:s? 4:targetRef:ObjectReference \
         5:deprecatedTopology:{s} 6:nodeName:s? 7:zone:s? 8:hints:EndpointHints",
        // Also named `EndpointPort`, but in another package and with another layout than that of `Endpoints`.
        "EndpointSlicePort 1:name:s? 2:protocol:s? 3:port:i? 4:appProtocol:s?",
        "EndpointConditions 1:ready:b? 2:serving:b? 3:terminating:b?",
        "EndpointHints 1:forZones:[ForZone] 2:forNodes:[ForNode]",
        "ForZone 1:name:s!",
        "ForNode 1:name:s!",
    ],
    printer: PRINTER,
    defaults,
    generation: Generation::SpecAndLabels,
    needs_revision: true,
    ..Kind::namespaced("discovery.k8s.io", &["v1"], "endpointslices", "EndpointSlice")
};

fn defaults(value: &mut Value) {
    each(value, "endpoints", |endpoint| set(endpoint, &[], "conditions", json!({})));
    each(value, "ports", |port| {
        set(port, &[], "name", json!(""));
        set(port, &[], "protocol", json!("TCP"));
    });
    for list in ["endpoints", "ports"] {
        shown_empty(value, &[], list);
    }
}

const PRINTER: Printer = Printer {
    columns: "Name, AddressType, Ports, Endpoints, Age",
    cells: |row| {
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
    },
};
