//! `Service`: a stable address for a changing set of pods.

use mock_cel::formats::{LABEL, is_label};
use serde_json::{Map, Value, json};

use super::at::At;
use super::causes::{Refuse, duplicate, unsupported};
use super::print::{Cells, NONE, Row, labels, load_balancer};
use super::{Causes, Generation, Kind, Meaning, Names};
use crate::fields::{each, set};
use crate::status::Cause;

pub(super) const SERVICE: Kind = Kind {
    about: "One stable address for a changing set of pods.",
    cells: CELLS,
    defaults,
    names: Names::Label,
    check,
    check_update,
    generation: Generation::None,
    created_by_update: true,
    shown_when_deleted: true,
    meaning: Meaning::Service,
    ..Kind::of("services")
};

fn defaults(value: &mut Value) {
    let Some(spec) = value.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    set(spec, &[], "type", json!("ClusterIP"));
    set(spec, &[], "sessionAffinity", json!("None"));
    if spec["sessionAffinity"] == "ClientIP" {
        set(spec, &["sessionAffinityConfig", "clientIP"], "timeoutSeconds", json!(10_800));
    }
    each(spec, "ports", |port| {
        set(port, &[], "protocol", json!("TCP"));
        let number = port["port"].clone();
        if matches!(&port["targetPort"], Value::Null)
            || port["targetPort"] == json!(0)
            || port["targetPort"] == json!("")
        {
            port["targetPort"] = number;
        }
    });
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return;
    }
    set(spec, &[], "internalTrafficPolicy", json!("Cluster"));
    // Clients write the endpoints of a headless service without a selector, so the addresses may be of any family.
    let is_any = spec["clusterIP"] == "None" && spec["selector"].as_object().is_none_or(Map::is_empty);
    set(spec, &[], "ipFamilyPolicy", json!(if is_any { "RequireDualStack" } else { "SingleStack" }));
    set(spec, &[], "ipFamilies", json!(["IPv4"]));
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        set(spec, &[], "externalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, &[], "allocateLoadBalancerNodePorts", json!(true));
    }
}

const TRAFFIC: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];

fn check(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && spec["clusterIP"] != "None" && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    let (mut names, mut numbers) = (Vec::new(), Vec::new());
    for (index, port) in ports.iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            causes.push(Cause::required(&format!("{at}.name"), ""));
        } else if !name.is_empty() && !is_label(name) {
            causes.push(Cause::invalid(&format!("{at}.name"), &format!("\"{name}\""), LABEL));
        } else if !name.is_empty() && names.contains(&name) {
            causes.push(duplicate(&format!("{at}.name"), name));
        }
        names.push(name);
        for key in ["port", "targetPort"] {
            let Some(number) = port[key].as_i64().or_else(|| port[key].is_null().then_some(0)) else { continue };
            if !(1..=65535).contains(&number) {
                let why = "must be between 1 and 65535, inclusive";
                causes.push(Cause::invalid(&format!("{at}.{key}"), &number.to_string(), why));
            }
        }
        let protocol = port["protocol"].as_str().unwrap_or_default();
        if !matches!(protocol, "SCTP" | "TCP" | "UDP") {
            causes.push(unsupported(&format!("{at}.protocol"), protocol, "\"SCTP\", \"TCP\", \"UDP\""));
        }
        let number = (protocol, port["port"].as_i64());
        if numbers.contains(&number) {
            let shown = format!("{{\"protocol\":\"{protocol}\",\"port\":{}}}", port["port"]);
            let message = format!("Duplicate value: {shown}");
            causes.push(Cause { reason: "FieldValueDuplicate", field: at, message });
        }
        numbers.push(number);
    }
    if !matches!(kind, "ClusterIP" | "ExternalName" | "LoadBalancer" | "NodePort") {
        causes.push(unsupported("spec.type", kind, "\"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\""));
    }
    if kind == "ExternalName" && spec["externalName"].as_str().unwrap_or_default().is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    let at = At::from("spec");
    causes.one_of(&spec["internalTrafficPolicy"], at.field("internalTrafficPolicy"), &["Cluster", "Local"]);
    causes.one_of(&spec["externalTrafficPolicy"], at.field("externalTrafficPolicy"), &["Cluster", "Local"]);
    causes.one_of(&spec["trafficDistribution"], at.field("trafficDistribution"), &TRAFFIC);
    let families = at.field("ipFamilies");
    for (index, family) in spec["ipFamilies"].as_array().into_iter().flatten().enumerate() {
        causes.one_of(family, families.item(index), &["IPv4", "IPv6"]);
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    causes.one_of(&spec["ipFamilyPolicy"], at.field("ipFamilyPolicy"), &policies);
    let affinity = spec["sessionAffinity"].as_str().unwrap_or_default();
    if !matches!(affinity, "ClientIP" | "None") {
        causes.push(unsupported("spec.sessionAffinity", affinity, "\"ClientIP\", \"None\""));
    }
}

fn check_update(new: &Value, old: &Value, causes: &mut Causes) {
    let address = |value: &Value| value["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    let (before, after) = (address(old), address(new));
    if !before.is_empty() && before != after && !after.is_empty() {
        let shown = format!("[\"{after}\"]");
        causes.push(Cause::invalid("spec.clusterIPs[0]", &shown, "may not change once set"));
    }
}

const CELLS: Cells = |row| {
    let ports = row.items("/spec/ports").map(|port| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        match port["nodePort"].as_i64() {
            Some(node) if node > 0 => format!("{}:{node}/{protocol}", port["port"]),
            _ => format!("{}/{protocol}", port["port"]),
        }
    });
    let ports = ports.collect::<Vec<_>>().join(",");
    vec![
        row.name(),
        row.text("/spec/type").into(),
        row.text_or("/spec/clusterIP", NONE),
        external(row),
        if ports.is_empty() { NONE.into() } else { ports.into() },
        row.age(),
        labels(row.at("/spec/selector")),
    ]
};

/// The addresses of a service outside the cluster, for `kubectl get`.
fn external(row: &Row<'_>) -> Value {
    let given: Vec<&str> = row.items("/spec/externalIPs").filter_map(Value::as_str).collect();
    let mut all = match row.text("/spec/type") {
        "ExternalName" => return row.text("/spec/externalName").into(),
        "LoadBalancer" => {
            let balancer = load_balancer(row);
            if balancer.is_empty() && given.is_empty() {
                return "<pending>".into();
            }
            balancer
        }
        _ if given.is_empty() => return NONE.into(),
        _ => String::new(),
    };
    for address in given {
        if !all.is_empty() {
            all.push(',');
        }
        all.push_str(address);
    }
    all.into()
}
