use serde_json::{Value, json};

use super::*;

fn node(name: &str, change: impl FnOnce(&mut Value)) -> Node {
    let mut value = json!({
        "metadata": {"name": name},
        "status": {
            "allocatable": {"cpu": "2", "memory": "1Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"},
        },
    });
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

fn pod(node: &str, image: &str, change: impl FnOnce(&mut Value)) -> Pod {
    let mut value = json!({
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": image}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "c", "imageID": "sha256:abc", "state": {"running": {}}}]},
    });
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

fn needs() -> Needs {
    Needs { architecture: "amd64".to_owned(), ..Needs::default() }
}

fn reason(node: Node, pods: &[Pod]) -> String {
    choose(&[node], pods, &needs()).unwrap_err().to_string()
}

#[test]
fn a_running_image_on_a_node_that_fits() {
    let place = choose(&[node("a", |_| {})], &[pod("a", "busybox:1", |_| {})], &needs()).unwrap();
    assert_eq!(place, Placement { node: "a".into(), image: "busybox:1".into(), seen_in: "n/p".into() });
}

#[test]
fn every_reason_against_a_node_is_given() {
    let pods = [pod("a", "busybox:1", |_| {})];
    let says = |node: Node, what: &str| {
        let reason = reason(node, &pods);
        assert!(reason.starts_with("no node accepts the seed: a: ") && reason.contains(what), "{reason}");
    };
    says(node("a", |node| node["status"]["nodeInfo"]["architecture"] = "arm64".into()), "it is linux/arm64");
    says(node("a", |node| node["status"]["nodeInfo"]["operatingSystem"] = "windows".into()), "it is windows/amd64");
    says(node("a", |node| node["status"]["conditions"][0]["status"] = "Unknown".into()), "not ready");
    says(node("a", |node| node["spec"]["unschedulable"] = true.into()), "cordoned");
    let taint = |effect: &str| json!([{"key": "k", "value": "v", "effect": effect}]);
    says(node("a", |node| node["spec"]["taints"] = taint("NoSchedule")), "the taint k=v:NoSchedule");
    says(node("a", |node| node["spec"]["taints"] = taint("NoExecute")), "the taint k=v:NoExecute");
    says(node("a", |node| node["status"]["allocatable"]["cpu"] = "499m".into()), "499m of its CPU are free");
    says(node("a", |node| node["status"]["allocatable"]["memory"] = "63Mi".into()), "63 MiB of its memory are free");
    says(node("a", |node| node["status"]["allocatable"]["pods"] = "1".into()), "as many Pods as it takes");
    assert!(choose(&[node("a", |node| node["spec"]["taints"] = taint("PreferNoSchedule"))], &pods, &needs()).is_ok());
    assert_eq!(choose(&[], &[], &needs()).unwrap_err().to_string(), "no node accepts the seed: there are no nodes");
}

#[test]
fn what_other_pods_ask_for_is_not_free() {
    let takes = |cpu: &str, phase: &str| {
        let (cpu, phase) = (cpu.to_owned(), phase.to_owned());
        pod("a", "busybox:1", move |pod| {
            pod["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": cpu});
            pod["status"]["phase"] = phase.into();
        })
    };
    assert!(choose(&[node("a", |_| {})], &[takes("1500m", "Running")], &needs()).is_ok());
    assert!(reason(node("a", |_| {}), &[takes("1501m", "Running")]).contains("499m of its CPU"));
    assert!(choose(&[node("a", |_| {})], &[takes("2", "Succeeded"), pod("a", "b:1", |_| {})], &needs()).is_ok());
    let init = pod("a", "busybox:1", |pod| {
        pod["spec"]["initContainers"] = json!([{"name": "i", "resources": {"requests": {"memory": "1000Mi"}}}]);
    });
    assert!(reason(node("a", |_| {}), &[init]).contains("24 MiB of its memory"));
}

#[test]
fn taints_can_be_put_up_with() {
    let tainted =
        node("a", |node| node["spec"]["taints"] = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]));
    let pods = [pod("a", "busybox:1", |_| {})];
    for (toleration, fits) in
        [("k", true), ("k=v", true), ("k:NoSchedule", true), ("k=v:NoExecute", false), ("k=w", false), ("j", false)]
    {
        let needs = Needs { tolerations: vec![toleration.to_owned()], ..needs() };
        assert_eq!(choose(std::slice::from_ref(&tainted), &pods, &needs).is_ok(), fits, "{toleration}");
    }
    assert_eq!(toleration("k").tolerating(), json!({"key": "k", "operator": "Exists"}));
    let all = json!({"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"});
    assert_eq!(toleration("k=v:NoExecute").tolerating(), all);
}

#[test]
fn the_better_image_is_taken() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let secret = pod("a", "a:1", |pod| pod["spec"]["imagePullSecrets"] = json!([{"name": "s"}]));
    let local = pod("a", "127.0.0.1:31999/x:1", |_| {});
    let waiting = pod("a", "b:1", |pod| pod["status"]["containerStatuses"][0]["state"] = json!({"waiting": {}}));
    let plain = pod("a", "m:1", |_| {});
    let known = pod("a", "n:1", |pod| {
        pod["status"]["containerStatuses"][0]["imageID"] = format!("docker.io/library/n@{digest}").into();
    });
    let stored = node("a", |node| node["status"]["images"] = json!([{"names": ["<none>@<none>", "stored:1"]}]));
    let needs = Needs { avoided_hosts: vec!["127.0.0.1:31999".to_owned()], ..needs() };
    let choice = |pods: &[Pod]| choose(std::slice::from_ref(&stored), pods, &needs).unwrap().image;
    assert_eq!(
        choice(&[secret.clone(), local.clone(), waiting.clone(), plain.clone(), known]),
        format!("docker.io/library/n@{digest}")
    );
    assert_eq!(choice(&[secret.clone(), local.clone(), waiting.clone(), plain]), "m:1");
    assert_eq!(choice(&[secret, local.clone(), waiting.clone()]), "a:1");
    assert_eq!(choice(&[local, waiting]), "stored:1");
    let empty = choose(&[node("a", |_| {})], &[], &needs).unwrap_err().to_string();
    assert!(empty.contains("no image on it that could be used; name one with --node-image"), "{empty}");
}
