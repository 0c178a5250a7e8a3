//! `EndpointSlice`: some of the addresses behind a `Service`.

use serde_json::{Value, json};

use super::print::{Cells, UNSET, some};
use super::{Generation, Kind};
use crate::fields::{each, set, shown_empty};

pub(super) const ENDPOINT_SLICE: Kind = Kind {
    about: "Some of the addresses behind a Service.",
    cells: CELLS,
    defaults,
    generation: Generation::SpecAndLabels,
    needs_revision: true,
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
