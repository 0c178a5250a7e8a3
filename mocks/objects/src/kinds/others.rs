//! Kinds for which the server does little: IP addresses, quotas, aggregated API servers, component statuses.

use serde_json::Value;

use super::at::At;
use super::causes::{Refuse, required};
use super::print::NONE;
use super::{Generation, Kind, Meaning, limit_range};
use crate::fields::set;

pub(super) const COMPONENT_STATUS: Kind = Kind {
    about: "Whether a part of the control plane is well.",
    cells: |row| {
        let healthy = row.items("/conditions").find(|condition| condition["type"] == "Healthy");
        let text = |key: &str| healthy.and_then(|condition| condition[key].as_str()).unwrap_or_default().to_owned();
        let status = healthy.map_or("Unknown", |one| if one["status"] == "True" { "Healthy" } else { "Unhealthy" });
        vec![row.name(), status.into(), text("message").into(), text("error").into()]
    },
    ..Kind::of("componentstatuses")
};

pub(super) const RESOURCE_QUOTA: Kind = Kind {
    about: "How much all objects of a namespace may use together.",
    cells: |row| {
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (name, hard) in row.at("/status/hard").and_then(Value::as_object).into_iter().flatten() {
            let used = row.at("/status/used").and_then(|used| used[name].as_str()).unwrap_or("0");
            let of = if name.starts_with("limits.") { &mut limits } else { &mut requests };
            of.push(format!("{name}: {used}/{}", hard.as_str().unwrap_or_default()));
        }
        requests.sort();
        limits.sort();
        vec![row.name(), requests.join(", ").into(), limits.join(", ").into(), row.age()]
    },
    check: |value, causes| {
        let at = At::from("spec.hard");
        for name in value["spec"]["hard"].as_object().into_iter().flat_map(serde_json::Map::keys) {
            if !name.contains('/') && !limit_range::is_standard(name) && !QUOTAS_OWN.contains(&name.as_str()) {
                causes.invalid_text(at.key(name), name, limit_range::NO_RESOURCE);
                causes.invalid_text(at.key(name), name, "must be a standard resource for quota");
            }
        }
        for (name, amount) in value["spec"]["hard"].as_object().into_iter().flatten() {
            let amount = amount.as_str().unwrap_or_default();
            if amount.starts_with('-') {
                causes.invalid_text(at.key(name), amount, "must be greater than or equal to 0");
            }
        }
        let (at, known) = (At::from("spec.scopes"), SCOPES);
        let scopes = value["spec"]["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for scope in scopes.filter(|scope| !known.contains(scope)) {
            causes.invalid(at, &value["spec"]["scopes"], &format!("unsupported scope {scope}"));
        }
    },
    generation: Generation::None,
    shown_when_deleted: true,
    meaning: Meaning::Quota,
    ..Kind::of("resourcequotas")
};

/// Names of resources that are valid only in quotas.
const QUOTAS_OWN: [&str; 17] = [
    "configmaps",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

pub(super) const SERVICE_CIDR: Kind = Kind {
    about: "A range of addresses of Services.",
    cells: |row| {
        let ranges: Vec<&str> = row.items("/spec/cidrs").filter_map(Value::as_str).collect();
        vec![row.name(), ranges.join(",").into(), row.age()]
    },
    check: |value, causes| {
        if value["spec"]["cidrs"].as_array().is_none_or(Vec::is_empty) {
            causes.required(At::from("spec.cidrs"), "at least one CIDR required");
        }
    },
    generation: Generation::None,
    ..Kind::of("servicecidrs.networking.k8s.io")
};

pub(super) const IP_ADDRESS: Kind = Kind {
    about: "An address that a Service has.",
    cells: |row| {
        let of = |key: &str| row.text(&format!("/spec/parentRef/{key}"));
        let group = if of("group").is_empty() { String::new() } else { format!(".{}", of("group")) };
        let resource = format!("{}{group}", of("resource")).to_lowercase();
        let namespace = if of("namespace").is_empty() { String::new() } else { format!("/{}", of("namespace")) };
        let parent = row.at("/spec/parentRef").map(|_| format!("{resource}{namespace}/{}", of("name")));
        vec![row.name(), parent.unwrap_or_else(|| NONE.to_owned()).into(), row.age()]
    },
    check: |value, causes| {
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        if name.parse::<std::net::IpAddr>().is_err() {
            causes.invalid_text(At::from("metadata.name"), name, "must be a valid IP address");
        }
        if value["spec"]["parentRef"].is_null() {
            return causes.required(At::from("spec.parentRef"), "");
        }
        required(value, "/spec/parentRef/resource", causes);
        required(value, "/spec/parentRef/name", causes);
    },
    fixed: &["/spec/parentRef"],
    generation: Generation::None,
    ..Kind::of("ipaddresses.networking.k8s.io")
};

pub(super) const API_SERVICE: Kind = Kind {
    about: "A version of a group that another API server serves.",
    cells: |row| {
        let service = row.at("/spec/service").filter(|service| service.is_object());
        let of = |key: &str| row.text(&format!("/spec/service/{key}"));
        let served = service.map_or("Local".to_owned(), |_| format!("{}/{}", of("namespace"), of("name")));
        let available = row.condition("Available");
        let text = |key: &str| available.and_then(|condition| condition[key].as_str()).unwrap_or_default();
        let available = match (text("status"), text("reason")) {
            ("", _) => "Unknown".to_owned(),
            ("True", _) => "True".to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        };
        vec![row.name(), served.into(), available.into(), row.age()]
    },
    defaults: |value| {
        if value.pointer("/spec/service").is_some_and(Value::is_object) {
            set(value, &["spec", "service"], "port", Value::from(443));
        }
    },
    check: |value, causes| {
        let (spec, at) = (&value["spec"], At::from("spec"));
        let (version, group) = (causes.text_in(spec, "version", at), spec["group"].as_str().unwrap_or_default());
        if group.is_empty() && version != "v1" {
            let why = "only v1 may have an empty group and it better be legacy kube";
            causes.required(at.field("group"), why);
        }
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        if name != format!("{version}.{group}") {
            causes.invalid_text(At::from("metadata.name"), name, "must be `spec.version+\".\"+spec.group`");
        }
        for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
            let number = spec[key].as_i64().unwrap_or(0);
            if !(1..=most).contains(&number) {
                causes.invalid(at.field(key), &number, &format!("must be positive and less than {most}"));
            }
        }
        if spec["service"].is_null() && spec["caBundle"].as_str().is_some_and(|bundle| !bundle.is_empty()) {
            causes.invalid(at.field("caBundle"), "[]", "local APIServices may not have a caBundle");
        }
    },
    generation: Generation::None,
    needs_revision: true,
    ..Kind::of("apiservices.apiregistration.k8s.io")
};
