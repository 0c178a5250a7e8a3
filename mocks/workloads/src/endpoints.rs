//! Writes the addresses of a Service's Pods as `Endpoints` and as `EndpointSlice`s.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::fields::{is_deleting, label, list, map, name, namespace, seconds, text, uid};
use super::kind::{Key, Kind};
use super::pod;
use super::scene::Scene;
use super::service;
use super::template::{controlled_by, set};

const BY: &str = "endpoint-controller";
const BY_SLICE: &str = "endpointslice-controller";
/// The label of an `EndpointSlice` that names its Service.
pub(super) const SERVICE: &str = "kubernetes.io/service-name";
const MANAGED: &str = "endpoints.kubernetes.io/managed-by";
const SLICE_MANAGED: &str = "endpointslice.kubernetes.io/managed-by";
const SLICE_MANAGER: &str = "endpointslice-controller.k8s.io";
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const HEADLESS: &str = "service.kubernetes.io/headless";
/// Maximum number of endpoints of one `EndpointSlice` (`--max-endpoints-per-slice`).
const SLICE_MAX: usize = 100;
const ADDRESSES_MAX: usize = 1000;

pub(super) fn look(scene: &mut Scene<'_>, key: &Key, service: &Value) {
    let selected = !map(service, "/spec/selector").is_empty() && text(service, "/spec/type") != "ExternalName";
    if !selected || is_deleting(service) {
        return;
    }
    let pods = scene.objects.of_kind(Kind::Pod, Some(&key.namespace));
    let pods = pods.filter(|(_, pod)| service::selects(service, &pod["metadata"]["labels"]) && has_address(pod));
    let pods: Vec<Arc<Value>> = pods.map(|(_, pod)| pod.clone()).collect();
    endpoints(scene, key, service, &pods);
    slices(scene, key, service, &pods);
}

/// Deletes an `Endpoints` object that this controller made and whose Service is gone.
pub(super) fn look_at_orphan(scene: &mut Scene<'_>, key: &Key, endpoints: &Value) {
    let is_own = label(endpoints, MANAGED) == BY;
    if is_own && scene.objects.find(Kind::Service, &key.namespace, &key.name).is_none() {
        scene.delete(BY, Kind::Endpoints, endpoints);
    }
}

fn has_address(pod: &Value) -> bool {
    !pod::is_over(pod) && !text(pod, "/status/podIP").is_empty()
}

fn is_headless(service: &Value) -> bool {
    text(service, "/spec/clusterIP") == "None"
}

/// The ports of a Service for one Pod, with the fields that `Endpoints` and `EndpointSlice`s have in common.
fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let ports = list(service, "/spec/ports").iter().filter_map(|port| {
        let mut found = json!({"port": service::target(port, pod)?, "protocol": text(port, "/protocol")});
        for key in ["name", "appProtocol"] {
            if !text(port, &format!("/{key}")).is_empty() {
                found[key] = port[key].clone();
            }
        }
        Some(found)
    });
    ports.collect()
}

fn target(pod: &Value) -> Value {
    json!({"kind": "Pod", "namespace": namespace(pod), "name": name(pod), "uid": uid(pod)})
}

/// The host name of a Pod in the DNS names of this Service, if the Pod has one.
fn hostname<'p>(service: &Value, pod: &'p Value) -> Option<&'p str> {
    let host = text(pod, "/spec/hostname");
    (!host.is_empty() && text(pod, "/spec/subdomain") == name(service)).then_some(host)
}

fn endpoints(scene: &mut Scene<'_>, key: &Key, service: &Value, pods: &[Arc<Value>]) {
    let all_ready = service["spec"]["publishNotReadyAddresses"] == json!(true);
    // By their ports, as text: the ready and the other Pods.
    let mut subsets: BTreeMap<String, (Vec<Value>, [Vec<Value>; 2])> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| all_ready || !is_deleting(pod)).take(ADDRESSES_MAX) {
        let mut address = json!({"ip": text(pod, "/status/podIP"), "nodeName": text(pod, "/spec/nodeName"), "targetRef": target(pod)});
        if let Some(host) = hostname(service, pod) {
            address["hostname"] = Value::from(host);
        }
        let ports = ports(service, pod);
        if ports.is_empty() && !list(service, "/spec/ports").is_empty() {
            continue;
        }
        let subset = subsets.entry(json!(ports).to_string()).or_insert_with(|| (ports, [Vec::new(), Vec::new()]));
        subset.1[usize::from(!(all_ready || pod::is_ready(pod)))].push(address);
    }
    let subsets = subsets.into_values().map(|(ports, addresses)| {
        let mut subset = json!({});
        for (key, list) in ["addresses", "notReadyAddresses"].into_iter().zip(addresses) {
            if !list.is_empty() {
                subset[key] = sorted(list);
            }
        }
        if !ports.is_empty() {
            subset["ports"] = Value::from(ports);
        }
        subset
    });
    let subsets: Vec<Value> = subsets.collect();
    let mut labels = map(service, "/metadata/labels");
    labels.insert(MANAGED.to_owned(), Value::from(BY));
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    let of = Key::new(Kind::Endpoints, &key.namespace, &key.name);
    let trigger = seconds(scene.now);
    let trigger = trigger.as_str().unwrap_or_default();
    let Some(known) = scene.objects.get(&of).cloned() else {
        let mut body = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {"name": &*key.name, "namespace": &*key.namespace, "labels": labels}, "subsets": subsets,
        });
        set(&mut body, "annotations", TRIGGER, trigger);
        return scene.create(BY, Kind::Endpoints, body);
    };
    if list(&known, "/subsets") == subsets && map(&known, "/metadata/labels") == labels {
        return;
    }
    let mut next = Value::clone(&known);
    next["metadata"]["labels"] = Value::Object(labels);
    set(&mut next, "annotations", TRIGGER, trigger);
    next["subsets"] = Value::from(subsets);
    scene.update(BY, of, next);
}

fn sorted(mut addresses: Vec<Value>) -> Value {
    addresses.sort_by_key(|address| text(address, "/ip").to_owned());
    Value::from(addresses)
}

fn slices(scene: &mut Scene<'_>, key: &Key, service: &Value, pods: &[Arc<Value>]) {
    let mut labels = map(service, "/metadata/labels");
    labels.insert(SERVICE.to_owned(), Value::from(&*key.name));
    labels.insert(SLICE_MANAGED.to_owned(), Value::from(SLICE_MANAGER));
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    let wanted = wanted(service, pods);
    let known = scene.objects.of_kind(Kind::Slice, Some(&key.namespace));
    let is_own = |slice: &Value| {
        label(slice, SERVICE) == &*key.name && label(slice, SLICE_MANAGED) == SLICE_MANAGER && !is_deleting(slice)
    };
    let known: Vec<Arc<Value>> = known.filter(|(_, slice)| is_own(slice)).map(|(_, slice)| slice.clone()).collect();
    let trigger = seconds(scene.now);
    let trigger = trigger.as_str().unwrap_or_default();
    for (turn, (ports, endpoints)) in wanted.iter().enumerate() {
        let Some(known) = known.get(turn) else {
            let mut body = json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {
                    "generateName": format!("{}-", key.name), "namespace": &*key.namespace, "labels": labels,
                    "ownerReferences": [controlled_by(service, Kind::Service)],
                },
                "endpoints": endpoints, "ports": ports,
            });
            set(&mut body, "annotations", TRIGGER, trigger);
            scene.create(BY_SLICE, Kind::Slice, body);
            continue;
        };
        if list(known, "/endpoints") == endpoints
            && list(known, "/ports") == ports
            && map(known, "/metadata/labels") == labels
        {
            continue;
        }
        let mut next = Value::clone(known);
        next["metadata"]["labels"] = Value::Object(labels.clone());
        set(&mut next, "annotations", TRIGGER, trigger);
        next["endpoints"] = json!(endpoints);
        next["ports"] = json!(ports);
        scene.update(BY_SLICE, Key::new(Kind::Slice, &key.namespace, name(known)), next);
    }
    for slice in known.iter().skip(wanted.len()) {
        scene.delete(BY_SLICE, Kind::Slice, slice);
    }
}

/// The ports and endpoints of each `EndpointSlice` that a Service must have; at least one.
fn wanted(service: &Value, pods: &[Arc<Value>]) -> Vec<(Vec<Value>, Vec<Value>)> {
    let all_ready = service["spec"]["publishNotReadyAddresses"] == json!(true);
    let mut by_ports: BTreeMap<String, (Vec<Value>, Vec<Value>)> = BTreeMap::new();
    for pod in pods {
        let mut ports = ports(service, pod);
        for port in &mut ports {
            if port["name"].is_null() {
                port["name"] = json!("");
            }
        }
        let (serving, terminating) = (pod::is_ready(pod), is_deleting(pod));
        let ready = all_ready || serving && !terminating;
        let mut endpoint = json!({
            "addresses": [text(pod, "/status/podIP")], "nodeName": text(pod, "/spec/nodeName"), "targetRef": target(pod),
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        });
        if let Some(host) = hostname(service, pod) {
            endpoint["hostname"] = Value::from(host);
        }
        by_ports.entry(json!(ports).to_string()).or_insert_with(|| (ports, Vec::new())).1.push(endpoint);
    }
    let mut wanted = Vec::new();
    for (ports, endpoints) in by_ports.into_values() {
        wanted.extend(endpoints.chunks(SLICE_MAX).map(|part| (ports.clone(), part.to_vec())));
    }
    if wanted.is_empty() {
        wanted.push((Vec::new(), Vec::new()));
    }
    wanted
}
