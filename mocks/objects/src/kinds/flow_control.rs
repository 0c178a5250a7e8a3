//! `FlowSchema` and `PriorityLevelConfiguration`, by which a real server delays requests. This server stores the
//! objects and delays no request.

use mock_cel::formats::subdomain;
use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::print::{Cells, NONE};
use super::{Causes, Kind};
use crate::fields::set;

/// Highest `matchingPrecedence` of a `FlowSchema`.
const PRECEDENCE_MAX: i64 = 10_000;

pub(super) const FLOW_SCHEMA: Kind = Kind {
    about: "Which requests belong to which priority level.",
    cells: CELLS,
    defaults: |value| set(value, &["spec"], "matchingPrecedence", json!(1000)),
    check: check_schema,
    ..Kind::of("flowschemas.flowcontrol.apiserver.k8s.io")
};

pub(super) const PRIORITY_LEVEL: Kind = Kind {
    about: "How many requests of a level are served at a time, and how many wait.",
    cells: CELLS_OF_LEVEL,
    defaults: fill_level,
    check: check_level,
    ..Kind::of("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io")
};

fn check_schema(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], At::from("spec"));
    let (place, precedence) = (at.field("matchingPrecedence"), spec["matchingPrecedence"].as_i64().unwrap_or(0));
    if precedence <= 0 {
        causes.invalid(place, &precedence, "must be a positive value");
    }
    if precedence > PRECEDENCE_MAX {
        causes.invalid(place, &precedence, &format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if precedence == 1 && value["metadata"]["name"] != "exempt" {
        causes.invalid(place, &precedence, "only the schema named 'exempt' may have matchingPrecedence 1");
    }
    let level = at.field("priorityLevelConfiguration");
    match spec["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default() {
        "" => causes.required(level.field("name"), "must reference a priority level"),
        name => causes.faults(level.field("name"), name, subdomain(name)),
    }
    if spec["distinguisherMethod"].is_object() {
        let method = spec["distinguisherMethod"]["type"].as_str().unwrap_or_default();
        if !matches!(method, "ByNamespace" | "ByUser") {
            let place = at.field("distinguisherMethod");
            causes.unsupported(place.field("type"), method, &["ByNamespace", "ByUser"]);
        }
    }
}

fn fill_level(value: &mut Value) {
    let Some(spec) = value.get_mut("spec") else { return };
    for (of, shares) in [("exempt", 0), ("limited", 30)] {
        if spec.get(of).is_some_and(Value::is_object) {
            set(spec, &[of], "nominalConcurrencyShares", json!(shares));
            set(spec, &[of], "lendablePercent", json!(0));
        }
    }
    if spec.pointer("/limited/limitResponse/queuing").is_some_and(Value::is_object) {
        for (key, default) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
            set(spec, &["limited", "limitResponse", "queuing"], key, json!(default));
        }
    }
}

fn check_level(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], At::from("spec"));
    let kind = spec["type"].as_str().unwrap_or_default();
    if (value["metadata"]["name"] == "exempt") != (kind == "Exempt") {
        causes.invalid_text(at.field("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind {
        "Exempt" if !spec["limited"].is_null() => {
            causes.forbidden(at.field("limited"), "must be nil if the type is not Limited");
        }
        "Exempt" => {}
        "Limited" => {
            if !spec["exempt"].is_null() {
                causes.forbidden(at.field("exempt"), "must be nil if the type is Limited");
            }
            if spec["limited"].is_null() {
                causes.required(at.field("limited"), "must not be empty when type is Limited");
            } else {
                check_response(&spec["limited"]["limitResponse"], causes);
            }
        }
        _ => causes.unsupported(at.field("type"), kind, &["Exempt", "Limited"]),
    }
}

fn check_response(response: &Value, causes: &mut Causes) {
    let at = At::from("spec.limited.limitResponse");
    match response["type"].as_str().unwrap_or_default() {
        "Reject" if !response["queuing"].is_null() => {
            causes.forbidden(at.field("queuing"), "must be nil if limited.limitResponse.type is not Limited");
        }
        "Queue" if response["queuing"].is_null() => {
            causes.required(at.field("queuing"), "must not be empty if limited.limitResponse.type is Limited");
        }
        "Reject" | "Queue" => {}
        other => causes.unsupported(at.field("type"), other, &["Queue", "Reject"]),
    }
}

const CELLS: Cells = |row| {
    let dangling = row.condition("Dangling").and_then(|condition| condition["status"].as_str());
    vec![
        row.name(),
        row.text("/spec/priorityLevelConfiguration/name").into(),
        row.number("/spec/matchingPrecedence").into(),
        row.text_or("/spec/distinguisherMethod/type", NONE),
        row.age(),
        dangling.unwrap_or("?").into(),
    ]
};

const CELLS_OF_LEVEL: Cells = |row| {
    let number = |pointer: &str| row.at(&format!("/spec/limited/{pointer}")).cloned().unwrap_or_else(|| NONE.into());
    vec![
        row.name(),
        row.text("/spec/type").into(),
        number("nominalConcurrencyShares"),
        number("limitResponse/queuing/queues"),
        number("limitResponse/queuing/handSize"),
        number("limitResponse/queuing/queueLengthLimit"),
        row.age(),
    ]
};
