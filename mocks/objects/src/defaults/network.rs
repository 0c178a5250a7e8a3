//! What services, their endpoints and the ways to them have without being asked ("Kubernetes API reference", Service
//! Resources). The addresses of services are given in `addresses`.

use serde_json::{Value, json};

use super::{each, set};

pub(super) fn service(value: &mut Value) {
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
    set(spec, &[], "ipFamilies", json!(["IPv4"]));
    set(spec, &[], "ipFamilyPolicy", json!("SingleStack"));
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        set(spec, &[], "externalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, &[], "allocateLoadBalancerNodePorts", json!(true));
    }
}

pub(super) fn endpoints(value: &mut Value) {
    each(value, "subsets", |subset| each(subset, "ports", |port| set(port, &[], "protocol", json!("TCP"))));
}

pub(super) fn endpoint_slice(value: &mut Value) {
    each(value, "endpoints", |endpoint| set(endpoint, &[], "conditions", json!({})));
    each(value, "ports", |port| {
        set(port, &[], "name", json!(""));
        set(port, &[], "protocol", json!("TCP"));
    });
    for list in ["endpoints", "ports"] {
        super::shown_empty(value, &[], list);
    }
}

pub(super) fn ingress_class(value: &mut Value) {
    if value.pointer("/spec/parameters").is_some_and(Value::is_object) {
        set(value, &["spec", "parameters"], "scope", json!("Cluster"));
    }
}

pub(super) fn policy(value: &mut Value) {
    let Some(spec) = value.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    set(spec, &[], "policyTypes", if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    for list in ["ingress", "egress"] {
        each(spec, list, |rule| each(rule, "ports", |port| set(port, &[], "protocol", json!("TCP"))));
    }
}
