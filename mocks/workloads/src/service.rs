//! Services of type `LoadBalancer`: assigns the external address, as a cloud's controller does.

use serde_json::{Value, json};

use super::fields::{is_deleting, list, map, text, uid};
use super::kind::Key;
use super::scene::Scene;
use super::write::{Author, Verb};

const BY: &str = "service-controller";
/// The finalizer that keeps a Service until its load balancer is gone.
const CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The first two bytes of load balancers' addresses: 198.18.0.0/15 is for benchmarks (RFC 2544).
const NET: [u8; 2] = [198, 18];

pub(super) fn selects(service: &Value, labels: &Value) -> bool {
    let selector = map(service, "/spec/selector");
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

pub(super) fn look(scene: &mut Scene<'_>, key: &Key, service: &Value) {
    let is_balanced =
        text(service, "/spec/type") == "LoadBalancer" && text(service, "/spec/loadBalancerClass").is_empty();
    let wanted = is_balanced && !is_deleting(service);
    let is_held = list(service, "/metadata/finalizers").iter().any(|finalizer| finalizer == CLEANUP);
    let has_address = !list(service, "/status/loadBalancer/ingress").is_empty();
    if !wanted {
        if is_held {
            if has_address && !is_deleting(service) {
                balance(scene, key, json!([]));
            }
            finalizer(scene, key, service, json!({"$deleteFromPrimitiveList/finalizers": [CLEANUP]}));
        }
        return;
    }
    if !is_held {
        finalizer(scene, key, service, json!({"finalizers": [CLEANUP]}));
    }
    if scene.is_down(service, (key, uid(service)), "balanced") {
        if has_address {
            balance(scene, key, json!([]));
        }
    } else if !has_address && scene.waited(service, "balanced", scene.config.ready_after) {
        let address = fresh_address(scene, service);
        balance(scene, key, json!([{"ip": address, "ipMode": "VIP"}]));
    }
}

fn finalizer(scene: &mut Scene<'_>, key: &Key, service: &Value, mut metadata: Value) {
    metadata["uid"] = Value::from(uid(service));
    scene.write(Author::Controller(BY), key.clone(), Verb::Patch, json!({"metadata": metadata}));
}

fn balance(scene: &mut Scene<'_>, key: &Key, ingress: Value) {
    let status = if ingress == json!([]) { Value::Null } else { ingress };
    let body = json!({"status": {"loadBalancer": {"ingress": status}}});
    scene.write(Author::Controller(BY), key.clone(), Verb::PatchStatus, body);
}

fn fresh_address(scene: &mut Scene<'_>, service: &Value) -> String {
    match text(service, "/spec/loadBalancerIP") {
        "" => {
            let number = *scene.addresses;
            *scene.addresses = scene.addresses.wrapping_add(1);
            let [a, b] = NET;
            format!("{a}.{b}.{}.{}", number / 250 % 250 + 1, number % 250 + 1)
        }
        wanted => wanted.to_owned(),
    }
}

/// The port number of a Pod that a Service port targets; `None` if the Pod has no such port.
pub(super) fn target(port: &Value, pod: &Value) -> Option<i64> {
    let target = &port["targetPort"];
    if let Some(number) = target.as_i64() {
        return Some(if number == 0 { port["port"].as_i64()? } else { number });
    }
    let Some(wanted) = target.as_str() else { return port["port"].as_i64() };
    let protocol = |of: &Value| match text(of, "/protocol") {
        "" => "TCP".to_owned(),
        given => given.to_owned(),
    };
    let containers = list(pod, "/spec/containers").iter().chain(list(pod, "/spec/initContainers"));
    let mut ports = containers.flat_map(|container| list(container, "/ports"));
    let found = ports.find(|known| name_of(known) == wanted && protocol(known) == protocol(port));
    found.and_then(|known| known["containerPort"].as_i64())
}

fn name_of(port: &Value) -> &str {
    text(port, "/name")
}
