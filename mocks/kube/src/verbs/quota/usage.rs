//! What an object uses, by the names that quotas have for it.
//!
//! Owns the names, and what a pod must say where they are limited. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mock_cel::Quantity;
use mock_objects::catalogue::Resource;
use mock_objects::kinds::Quota;
use serde_json::Value;

use super::{Amounts, amount_of};

use mock_objects::object;

/// What pods use, apart from what has a name of its own in each cluster.
const OF_PODS: &[&str] = &[
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
/// What every container of a pod must say where it is limited: a mistake that was made early and is kept.
const REQUIRED: &[&str] = &["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
const OF_SERVICES: &[&str] = &["count/services", "services", "services.nodeports", "services.loadbalancers"];
const OF_CLAIMS: &[&str] = &["persistentvolumeclaims", "requests.storage"];
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Whether objects of a resource are counted at all, and when they change.
pub(super) fn is_counted(resource: &Resource, changes: bool) -> bool {
    match resource.rules.quota {
        // They come in masses, and nobody asks for them.
        Quota::Never => false,
        Quota::Services | Quota::Claims => true,
        Quota::Count | Quota::Name | Quota::Pods => !changes,
    }
}

/// Whether `name` is something that objects of the resource use.
pub(super) fn is_tracked(resource: &Resource, name: &str) -> bool {
    let full_name = &*resource.full_name;
    match resource.rules.quota {
        Quota::Pods => {
            let of_cluster = name.strip_prefix("requests.").is_some_and(|name| !is_native(name));
            OF_PODS.contains(&name)
                || name.starts_with("hugepages-")
                || name.starts_with("requests.hugepages-")
                || of_cluster
        }
        Quota::Services => OF_SERVICES.contains(&name),
        Quota::Claims => {
            let of_class = name.split_once(OF_CLASS).is_some_and(|(_, name)| OF_CLAIMS.contains(&name));
            name == "count/persistentvolumeclaims" || OF_CLAIMS.contains(&name) || of_class
        }
        Quota::Name => name.strip_prefix("count/") == Some(full_name) || name == full_name,
        Quota::Count | Quota::Never => name.strip_prefix("count/") == Some(full_name),
    }
}

/// What an object uses.
pub(super) fn of(resource: &Resource, value: &Value) -> Amounts {
    let mut used = Amounts::from([(format!("count/{}", resource.full_name), number(1))]);
    match resource.rules.quota {
        Quota::Pods => used.extend(of_pod(value, Timestamp::now())),
        Quota::Services => {
            let (ports, balancers) = of_service(&value["spec"]);
            used.insert("services".to_owned(), number(1));
            used.insert("services.nodeports".to_owned(), number(ports));
            used.insert("services.loadbalancers".to_owned(), number(balancers));
        }
        Quota::Claims => used.extend(of_claim(value)),
        Quota::Name => {
            used.insert(resource.full_name.to_string(), number(1));
        }
        Quota::Count | Quota::Never => {}
    }
    used
}

/// What the containers of a pod do not say of what is `limited` and must be said; `None`: they say it all, or the pod says it
/// for them.
pub(super) fn missing(limited: &[&str], pod: &Value) -> Option<String> {
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    if ["requests", "limits"].iter().any(|which| pod["spec"]["resources"][*which].is_object()) {
        return None;
    }
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array().into_iter().flatten() {
            let resources = &container["resources"];
            let says = compute(&amounts(&resources["requests"]), &amounts(&resources["limits"]));
            for name in limited.iter().filter(|name| REQUIRED.contains(name) && !says.contains_key(**name)) {
                missing.entry(name).or_default().insert(container["name"].as_str().unwrap_or_default());
            }
        }
    }
    let one = |(name, containers): (&str, BTreeSet<&str>)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    };
    let texts: Vec<String> = missing.into_iter().map(one).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// A pod that has ended, or should have, uses nothing but its place in the store.
fn of_pod(pod: &Value, now: Timestamp) -> Amounts {
    let has_ended = matches!(pod.pointer("/status/phase").and_then(Value::as_str), Some("Failed" | "Succeeded"));
    // The time of the deletion is when the pod should have ended.
    let is_late = object::meta(pod, "deletionTimestamp").parse::<Timestamp>().is_ok_and(|ends| now > ends);
    if has_ended || is_late {
        return Amounts::new();
    }
    compute(&requests(pod, "requests"), &requests(pod, "limits"))
}

/// What requests and limits come to, by the names of quotas.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::from([("pods".to_owned(), number(1))]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = requests.get(name) {
            used.insert(name.to_owned(), *amount);
            used.insert(format!("requests.{name}"), *amount);
        }
        if let Some(amount) = limits.get(name) {
            used.insert(format!("limits.{name}"), *amount);
        }
    }
    for (name, amount) in requests {
        if name.starts_with("hugepages-") {
            used.insert(name.clone(), *amount);
        }
        if name.starts_with("hugepages-") || !is_native(name) {
            used.insert(format!("requests.{name}"), *amount);
        }
    }
    used
}

/// What a pod asks for at its fullest moment: all containers together with those that start beside them, or before that one
/// of those that begin it, with those that were started earlier and stay.
fn requests(pod: &Value, which: &str) -> Amounts {
    let spec = &pod["spec"];
    let of = |container: &Value| amounts(&container["resources"][which]);
    let mut total = Amounts::new();
    for container in spec["containers"].as_array().into_iter().flatten() {
        add(&mut total, &of(container));
    }
    let (mut beside, mut most) = (Amounts::new(), Amounts::new());
    for container in spec["initContainers"].as_array().into_iter().flatten() {
        let mut moment = of(container);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &moment);
            add(&mut beside, &moment);
            moment.clone_from(&beside);
        } else {
            add(&mut moment, &beside);
        }
        raise(&mut most, moment);
    }
    raise(&mut total, most);
    // What the pod says of itself counts instead (KEP-2837).
    total.extend(amounts(&spec["resources"][which]));
    for (name, amount) in amounts(&spec["overhead"]) {
        // What has no limit has none with its overhead either.
        if which == "requests" || total.contains_key(&name) {
            add(&mut total, &Amounts::from([(name, amount)]));
        }
    }
    total
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        total.entry(name.clone()).and_modify(|total| *total = total.plus(*amount)).or_insert(*amount);
    }
}

fn raise(total: &mut Amounts, to: Amounts) {
    for (name, amount) in to {
        total.entry(name).and_modify(|total| *total = amount.max(*total)).or_insert(amount);
    }
}

/// Node ports and load balancers.
fn of_service(spec: &Value) -> (usize, usize) {
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    match spec["type"].as_str() {
        Some("NodePort") => (ports.len(), 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => {
            (ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|port| port != 0)).count(), 1)
        }
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    }
}

fn of_claim(claim: &Value) -> Amounts {
    let old = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    let class = old.or(claim["spec"]["storageClassName"].as_str()).filter(|class| !class.is_empty());
    let mut plain = vec![("persistentvolumeclaims", number(1))];
    plain.extend(amount_of(&claim["spec"]["resources"]["requests"]["storage"]).map(|size| ("requests.storage", size)));
    let names = |(name, amount): (&str, Quantity)| {
        let of_class = class.map(|class| (format!("{class}{OF_CLASS}{name}"), amount));
        std::iter::once((name.to_owned(), amount)).chain(of_class).collect::<Vec<_>>()
    };
    plain.into_iter().flat_map(names).collect()
}

/// Whether a resource is one of Kubernetes' own, not of a cluster's devices.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn amounts(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), amount_of(amount)?))).collect()
}

fn number(number: usize) -> Quantity {
    // As text, because that makes a plain number of it and not one with an exponent.
    Quantity::parse(&number.to_string()).unwrap_or(Quantity::whole(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use mock_objects::catalogue::Catalogue;

    fn used(full_name: &str, value: &Value) -> BTreeMap<String, String> {
        let catalogue = Catalogue::builtin();
        let used = of(catalogue.by_full_name(full_name).unwrap(), value);
        used.into_iter().map(|(name, amount)| (name, amount.canonical())).collect()
    }

    fn tracked(full_name: &str, name: &str) -> bool {
        is_tracked(Catalogue::builtin().by_full_name(full_name).unwrap(), name)
    }

    fn container(name: &str, cpu: &str) -> Value {
        json!({"name": name, "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn which_names_are_whose() {
        for (full_name, name) in [
            ("pods", "requests.example.com/gpu"),
            ("pods", "hugepages-2Mi"),
            ("pods", "limits.memory"),
            ("services", "services.nodeports"),
            ("persistentvolumeclaims", "gold.storageclass.storage.k8s.io/requests.storage"),
            ("configmaps", "configmaps"),
            ("configmaps", "count/configmaps"),
            ("deployments.apps", "count/deployments.apps"),
        ] {
            assert!(tracked(full_name, name), "{full_name} {name}");
        }
        for (full_name, name) in [
            ("pods", "requests.storage"),
            ("pods", "limits.example.com/gpu"),
            ("services", "pods"),
            ("deployments.apps", "deployments.apps"),
            ("deployments.apps", "count/deployments"),
        ] {
            assert!(!tracked(full_name, name), "{full_name} {name}");
        }
    }

    #[test]
    fn a_pod_is_counted_at_its_fullest_moment() {
        let mut pod = json!({"spec": {"containers": [container("a", "100m"), container("b", "200m")],
            "initContainers": [container("i", "250m")]}});
        assert_eq!(used("pods", &pod)["requests.cpu"], "300m");
        pod["spec"]["initContainers"][0] = container("i", "1");
        assert_eq!(used("pods", &pod)["cpu"], "1");
        let mut stays = container("s", "50m");
        stays["restartPolicy"] = json!("Always");
        pod["spec"]["initContainers"] = json!([stays, container("i", "320m")]);
        assert_eq!(used("pods", &pod)["cpu"], "370m", "the first is there while the second runs");
        pod["spec"]["overhead"] = json!({"cpu": "30m", "memory": "1Mi"});
        let full = used("pods", &pod);
        assert_eq!((&*full["cpu"], &*full["memory"], full.get("limits.memory")), ("400m", "1Mi", None));
        pod["status"] = json!({"phase": "Succeeded"});
        assert_eq!(used("pods", &pod).into_keys().collect::<Vec<_>>(), ["count/pods"]);
    }

    #[test]
    fn what_else_is_counted() {
        let service = |more: Value| {
            let mut service = json!({"spec": {"ports": [{"port": 1, "nodePort": 30000}, {"port": 2}]}});
            for (key, value) in more.as_object().unwrap() {
                service["spec"][key] = value.clone();
            }
            let used = used("services", &service);
            (used["services.nodeports"].clone(), used["services.loadbalancers"].clone())
        };
        let pair = |ports: &str, balancers: &str| (ports.to_owned(), balancers.to_owned());
        assert_eq!(service(json!({"type": "ClusterIP"})), pair("0", "0"));
        assert_eq!(service(json!({"type": "NodePort"})), pair("2", "0"));
        assert_eq!(service(json!({"type": "LoadBalancer"})), pair("2", "1"));
        let without = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
        assert_eq!(service(without), pair("1", "1"));
        let claim = json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}}});
        let names: Vec<String> = used("persistentvolumeclaims", &claim).into_keys().collect();
        let wanted = [
            "count/persistentvolumeclaims",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
            "gold.storageclass.storage.k8s.io/requests.storage",
            "persistentvolumeclaims",
            "requests.storage",
        ];
        assert_eq!(names, wanted);
        assert_eq!(used("secrets", &json!({})).into_keys().collect::<Vec<_>>(), ["count/secrets", "secrets"]);
    }

    #[test]
    fn what_must_be_said() {
        let pod =
            json!({"spec": {"containers": [container("b", "1"), {"name": "a"}], "initContainers": [{"name": "i"}]}});
        let missing = |limited: &[&str]| missing(limited, &pod);
        assert_eq!(missing(&["cpu", "limits.memory", "pods"]).unwrap(), "cpu for: a,i; limits.memory for: a,b,i");
        assert_eq!(missing(&["requests.ephemeral-storage", "pods"]), None);
        let mut own = pod.clone();
        own["spec"]["resources"] = json!({"requests": {"cpu": "3"}});
        assert_eq!((super::missing(&["memory"], &own), &*used("pods", &own)["cpu"]), (None, "3"));
    }
}
