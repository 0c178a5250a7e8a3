//! `ResourceQuota`: the amounts that all objects of a namespace use together (Kubernetes documentation, "Resource
//! Quotas").
//!
//! Owns the amounts that one object uses, the choice of objects that a quota counts, and the status that the controller
//! of a real cluster writes. `admission::plugins::quota` refuses objects.

use std::collections::BTreeMap;

use mock_cel::Quantity;
use mock_objects::catalogue::Resource;
use mock_objects::kinds::pod_total;
use mock_objects::object;
use mock_store::Expect;
use serde_json::{Map, Value, json};

use super::cluster::Cluster;

const QUOTAS: &str = "resourcequotas";

/// Amounts of resources, by the resources' names in quotas, such as `requests.cpu` or `count/pods`.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// Resources that a quota may also name without the prefix `count/`.
const COUNTED: [&str; 7] =
    ["configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services"];

pub(crate) fn of_namespace(cluster: &Cluster, namespace: &str) -> Vec<Value> {
    all(cluster, QUOTAS, Some(namespace))
}

fn all(cluster: &Cluster, full_name: &str, namespace: Option<&str>) -> Vec<Value> {
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_full_name(full_name) else { return Vec::new() };
    let page = cluster.read(|store| store.list(resource.id, namespace, store.revision(), None, usize::MAX, |_| true));
    page.map(|page| page.items).unwrap_or_default().iter().map(|version| version.value()).collect()
}

pub(crate) fn usage(resource: &Resource, value: &Value) -> Amounts {
    let one = Quantity::whole(1);
    let mut used = Amounts::from([(format!("count/{}", resource.full_name), one)]);
    let name = &*resource.full_name;
    // A pod that ended uses nothing but its name.
    let ended = name == "pods" && matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if ended {
        return used;
    }
    if COUNTED.contains(&name) {
        used.insert(name.to_owned(), one);
    }
    match name {
        "pods" => {
            for (name, amount) in pod_total(&value["spec"], "requests") {
                used.insert(format!("requests.{name}"), amount);
                if matches!(name, "cpu" | "memory" | "ephemeral-storage") {
                    used.insert(name.to_owned(), amount);
                }
            }
            for (name, amount) in pod_total(&value["spec"], "limits") {
                used.insert(format!("limits.{name}"), amount);
            }
        }
        "services" => {
            let kind = value["spec"]["type"].as_str().unwrap_or_default();
            let ports = value["spec"]["ports"].as_array().map_or(0, Vec::len);
            if kind == "LoadBalancer" {
                used.insert("services.loadbalancers".to_owned(), one);
            }
            if matches!(kind, "LoadBalancer" | "NodePort") {
                used.insert("services.nodeports".to_owned(), Quantity::whole(i64::try_from(ports).unwrap_or(0)));
            }
        }
        "persistentvolumeclaims" => {
            let amount = value["spec"]["resources"]["requests"]["storage"].as_str().and_then(Quantity::parse);
            let class = value["spec"]["storageClassName"].as_str().filter(|class| !class.is_empty());
            if let Some(amount) = amount {
                used.insert("requests.storage".to_owned(), amount);
            }
            if let Some(class) = class {
                let of_class = |what: &str| format!("{class}.storageclass.storage.k8s.io/{what}");
                used.insert(of_class("persistentvolumeclaims"), one);
                if let Some(amount) = amount {
                    used.insert(of_class("requests.storage"), amount);
                }
            }
        }
        _ => {}
    }
    used
}

/// Whether a quota counts an object: the object must be in all scopes of the quota.
pub(crate) fn concerns(quota: &Value, resource: &Resource, value: &Value) -> bool {
    let scopes = quota["spec"]["scopes"].as_array().into_iter().flatten();
    let named = scopes.map(|scope| (scope.as_str().unwrap_or_default(), "Exists", &Value::Null));
    let expressions = quota.pointer("/spec/scopeSelector/matchExpressions").and_then(Value::as_array);
    let selected = expressions.into_iter().flatten().map(|one| {
        (one["scopeName"].as_str().unwrap_or_default(), one["operator"].as_str().unwrap_or_default(), &one["values"])
    });
    let mut all = named.chain(selected).peekable();
    if all.peek().is_none() {
        return true;
    }
    &*resource.full_name == "pods" && all.all(|(scope, operator, values)| in_scope(value, scope, operator, values))
}

fn in_scope(pod: &Value, scope: &str, operator: &str, values: &Value) -> bool {
    let spec = &pod["spec"];
    let ends = spec["activeDeadlineSeconds"].as_i64().is_some();
    // As for the class of a Pod, only CPU and memory count.
    let asks = |which: &str| pod_total(spec, which).keys().any(|name| matches!(*name, "cpu" | "memory"));
    let best_effort = !asks("requests") && !asks("limits");
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => {
            let class = spec["priorityClassName"].as_str().unwrap_or_default();
            let listed = values.as_array().is_some_and(|values| values.contains(&Value::from(class)));
            match operator {
                "In" => listed,
                "NotIn" => !listed,
                "DoesNotExist" => class.is_empty(),
                _ => !class.is_empty(),
            }
        }
        _ => false,
    }
}

/// The amount of each resource in a quota that the objects of the namespace use.
pub(crate) fn used(cluster: &Cluster, quota: &Value) -> Amounts {
    let namespace = object::meta(quota, "namespace");
    let hard = quota["spec"]["hard"].as_object().into_iter().flat_map(Map::keys);
    let mut used: Amounts = hard.map(|name| (name.clone(), Quantity::whole(0))).collect();
    let names: Vec<String> = used.keys().map(|name| resource_of(name).to_owned()).collect();
    let catalogue = cluster.catalogue();
    for resource in
        catalogue.originals().filter(|resource| resource.namespaced && names.contains(&resource.full_name.to_string()))
    {
        for value in all(cluster, &resource.full_name, Some(namespace)) {
            if concerns(quota, resource, &value) {
                for (name, amount) in usage(resource, &value) {
                    if let Some(sum) = used.get_mut(&name) {
                        *sum = sum.plus(amount);
                    }
                }
            }
        }
    }
    used
}

/// The full name of the resource whose objects use an amount: `pods` for `requests.cpu`.
fn resource_of(name: &str) -> &str {
    match name {
        name if name.starts_with("count/") => &name["count/".len()..],
        name if name.starts_with("services.") => "services",
        name if name == "requests.storage" || name.contains(".storageclass.storage.k8s.io/") => {
            "persistentvolumeclaims"
        }
        name if COUNTED.contains(&name) => name,
        _ => "pods",
    }
}

/// Writes the status of every quota whose stored status is outdated.
pub(crate) fn refresh(cluster: &Cluster) {
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_full_name(QUOTAS) else { return };
    let page = cluster.read(|store| store.list(resource.id, None, store.revision(), None, usize::MAX, |_| true));
    for version in page.map(|page| page.items).unwrap_or_default() {
        let mut quota = version.value();
        let used: Map<String, Value> =
            used(cluster, &quota).into_iter().map(|(name, amount)| (name, Value::from(amount.canonical()))).collect();
        let status = if used.is_empty() { json!({}) } else { json!({"hard": quota["spec"]["hard"], "used": used}) };
        if quota["status"] != status {
            quota["status"] = status;
            // Losing a race is fine: it is looked at again.
            let _ = cluster.put(resource, Expect::Revision(version.revision), quota);
        }
    }
}
