//! Which values the built-in kinds allow, beyond what all objects have in common.
//!
//! Owns the checks of the kinds that subjects write most, with the real server's field names; it does not aim at
//! every rule of every kind (see DIFFERENCES.md). Metadata is checked in `names`.

use serde_json::Value;

use super::causes::{at_least, unsupported};
use super::{pod, rules};
use crate::catalogue::Resource;
use crate::status::Cause;

/// `ConfigMap` and `Secret` keys may be as long as a file name.
const KEY_MAX_CHARS: usize = 253;

/// Answers what is wrong with the content of an object.
pub fn check(value: &Value, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    match &*resource.full_name {
        "configmaps" => {
            keys(value, "data", &mut causes);
            keys(value, "binaryData", &mut causes);
            for key in value["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
                if value["binaryData"].get(key).is_some() {
                    let why = "duplicate of key present in binaryData";
                    causes.push(Cause::invalid(&format!("data[{key}]"), &format!("\"{key}\""), why));
                }
            }
        }
        "secrets" => {
            keys(value, "data", &mut causes);
            for key in secret_keys(value["type"].as_str().unwrap_or_default()) {
                if value["data"].get(*key).is_none() {
                    causes.push(Cause::required(&format!("data[{key}]"), ""));
                }
            }
            secret(value, &mut causes);
        }
        "pods" => pod::check(&value["spec"], "spec", &mut causes),
        "deployments.apps" => deployment(value, &mut causes),
        "namespaces" => {
            let (phase, deleting) = (value["status"]["phase"].as_str(), super::is_deleting(value));
            let fits = if deleting { Some("Terminating") } else { Some("Active") };
            if phase.is_some() && phase != fits {
                let why = "may only be 'Active' if `deletionTimestamp` is empty, and 'Terminating' if it is not";
                let shown = format!("\"{}\"", phase.unwrap_or_default());
                causes.push(Cause::invalid("status.Phase", &shown, why));
            }
        }
        "leases.coordination.k8s.io" => {
            at_least(value, "/spec/leaseDurationSeconds", "spec.leaseDurationSeconds", 1, &mut causes);
            at_least(value, "/spec/leaseTransitions", "spec.leaseTransitions", 0, &mut causes);
        }
        "networkpolicies.networking.k8s.io" => network_policy(&value["spec"], &mut causes),
        "statefulsets.apps" => rules::workload(value, "statefulset", &mut causes),
        "replicasets.apps" => rules::workload(value, "deployment", &mut causes),
        "daemonsets.apps" => rules::workload(value, "daemonset", &mut causes),
        "replicationcontrollers" => rules::replication_controller(value, &mut causes),
        "jobs.batch" => rules::job(value, "/spec", &mut causes),
        "cronjobs.batch" => rules::cron_job(value, &mut causes),
        "controllerrevisions.apps" => rules::revision(value, &mut causes),
        "services" => rules::service(value, &mut causes),
        "ingresses.networking.k8s.io" => rules::ingress(value, &mut causes),
        "ingressclasses.networking.k8s.io" => rules::required(value, "/spec/controller", &mut causes),
        "persistentvolumeclaims" => rules::claim(value, &mut causes),
        "persistentvolumes" => rules::volume(value, &mut causes),
        "storageclasses.storage.k8s.io" => rules::required(value, "/provisioner", &mut causes),
        "priorityclasses.scheduling.k8s.io" => rules::priority_class(value, &mut causes),
        "roles.rbac.authorization.k8s.io" => rules::role(value, false, &mut causes),
        "clusterroles.rbac.authorization.k8s.io" => rules::role(value, true, &mut causes),
        "rolebindings.rbac.authorization.k8s.io" => rules::binding(value, false, &mut causes),
        "clusterrolebindings.rbac.authorization.k8s.io" => rules::binding(value, true, &mut causes),
        "poddisruptionbudgets.policy" => rules::disruption_budget(value, &mut causes),
        "runtimeclasses.node.k8s.io" => rules::runtime_class(value, &mut causes),
        "certificatesigningrequests.certificates.k8s.io" => rules::signing_request(value, &mut causes),
        "resourcequotas" => rules::quota(value, &mut causes),
        _ => {}
    }
    causes
}

fn keys(value: &Value, map: &str, causes: &mut Vec<Cause>) {
    for key in value[map].as_object().into_iter().flatten().map(|(key, _)| key) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let fits = !key.is_empty() && key.len() <= KEY_MAX_CHARS && key.bytes().all(plain);
        if !fits || matches!(key.as_str(), "." | "..") {
            let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
            causes.push(Cause::invalid(&format!("{map}[{key}]"), &format!("\"{key}\""), why));
        }
    }
}

/// The keys that a type of secret must have ("Types of Secret").
fn secret_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    }
}

/// What a type of secret asks for beyond keys.
fn secret(value: &Value, causes: &mut Vec<Cause>) {
    let has = |key: &str| value["data"].get(key).is_some();
    match value["type"].as_str().unwrap_or_default() {
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            causes.push(Cause::required("data[username]", ""));
            causes.push(Cause::required("data[password]", ""));
        }
        "kubernetes.io/service-account-token" => {
            let account = "/metadata/annotations/kubernetes.io~1service-account.name";
            if value.pointer(account).and_then(Value::as_str).unwrap_or_default().is_empty() {
                causes.push(Cause::required("metadata.annotations[kubernetes.io/service-account.name]", ""));
            }
        }
        "kubernetes.io/dockerconfigjson" => {
            let data = value["data"][".dockerconfigjson"].as_str().unwrap_or_default();
            if has(".dockerconfigjson") && !is_json(data) {
                let why = "<secret contents redacted>";
                causes.push(Cause::invalid("data[.dockerconfigjson]", &format!("\"{why}\""), "not valid JSON"));
            }
        }
        _ => {}
    }
}

fn is_json(base64: &str) -> bool {
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD.decode(base64).unwrap_or_default();
    serde_json::from_slice::<serde::de::IgnoredAny>(&decoded).is_ok()
}

fn deployment(value: &Value, causes: &mut Vec<Cause>) {
    let spec = &value["spec"];
    at_least(value, "/spec/replicas", "spec.replicas", 0, causes);
    let selector = &spec["selector"];
    let labels = &spec["template"]["metadata"]["labels"];
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else if selector.as_object().is_some_and(serde_json::Map::is_empty) {
        causes.push(Cause::invalid("spec.selector", "{}", "empty selector is invalid for deployment"));
    }
    let mut wanted = selector["matchLabels"].as_object().into_iter().flatten();
    if selector.is_null() || wanted.any(|(key, text)| labels.get(key) != Some(text)) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &labels.to_string(), why));
    }
    if spec["strategy"]["type"] == "Recreate" && spec["strategy"].get("rollingUpdate").is_some_and(Value::is_object) {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        causes.push(Cause::forbidden("spec.strategy.rollingUpdate", why));
    }
    pod::check(&spec["template"]["spec"], "spec.template.spec", causes);
    let policy = spec["template"]["spec"]["restartPolicy"].as_str().unwrap_or("Always");
    if policy != "Always" && matches!(policy, "OnFailure" | "Never") {
        causes.push(unsupported("spec.template.spec.restartPolicy", policy, "\"Always\""));
    }
}

fn network_policy(spec: &Value, causes: &mut Vec<Cause>) {
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in spec[list].as_array().into_iter().flatten().enumerate() {
            for (number, port) in rule["ports"].as_array().into_iter().flatten().enumerate() {
                let field = format!("spec.{list}[{index}].ports[{number}].port");
                if let Some(port) = port["port"].as_i64().filter(|port| !(1..=65535).contains(port)) {
                    let why = "must be between 1 and 65535, inclusive";
                    causes.push(Cause::invalid(&field, &port.to_string(), why));
                }
            }
            for (number, peer) in rule[peers].as_array().into_iter().flatten().enumerate() {
                let at = format!("spec.{list}[{index}].{peers}[{number}]");
                if peer.as_object().is_none_or(serde_json::Map::is_empty) {
                    causes.push(Cause::required(&at, "must specify a peer"));
                }
                if let Some(cidr) = peer.pointer("/ipBlock/cidr").and_then(Value::as_str).filter(|cidr| !is_cidr(cidr))
                {
                    let why = "not a valid CIDR";
                    causes.push(Cause::invalid(&format!("{at}.ipBlock.cidr"), &format!("\"{cidr}\""), why));
                }
            }
        }
    }
    for (index, kind) in spec["policyTypes"].as_array().into_iter().flatten().enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        if !matches!(kind, "Ingress" | "Egress") {
            causes.push(unsupported(&format!("spec.policyTypes[{index}]"), kind, "\"Egress\", \"Ingress\""));
        }
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    match (address.parse::<std::net::IpAddr>(), bits.parse::<u8>()) {
        (Ok(address), Ok(bits)) => bits <= if address.is_ipv4() { 32 } else { 128 },
        _ => false,
    }
}
