//! Hand-written sequences of requests, for cases that random sequences rarely contain.

mod creations;
mod definitions;
mod events;
mod kinds;
mod parts;
mod unknown;
mod watches;

use serde_json::json;

use crate::generator::Kind;
use crate::sequence::{Sequence, Step};

/// All hand-written sequences. Every comparison runs these sequences first.
pub fn all() -> Vec<Sequence> {
    let one = |name: &str, steps: Vec<Step>| Sequence { name: name.to_owned(), steps };
    vec![
        one("a namespace's life", namespaces()),
        one("a namespace's end", deleted_namespace()),
        one("no content in a namespace that goes", terminating()),
        one("foreground deletion", propagation("Foreground")),
        one("orphaning deletion", propagation("Orphan")),
        one("a revision from the future", future()),
        one("pages", pages()),
        one("a pod that has a node", bound_pod()),
        one("scale", scale()),
        one("finalizers", finalizers()),
        one("conflicts of server-side apply", conflicts()),
        one("applied objects that are not of their type", mistyped()),
        one("pods with time to end", graceful_pods()),
        one("pods with time to end, all at once", graceful_collection()),
        one("pages while others write", pages_and_writes()),
        one("deleting a selection", collection()),
    ]
    .into_iter()
    .chain(events::all())
    .chain(definitions::all())
    .chain(kinds::all())
    .chain(parts::all())
    .chain(creations::all())
    .chain(unknown::all())
    .chain(watches::all())
    .collect()
}

/// A sequence of requests about compacted history, for which both servers must compact continuously.
pub fn compacted() -> Sequence {
    let path = Kind::ConfigMap.path();
    let create = |name: &str| Step::post(Kind::ConfigMap.path(), Kind::ConfigMap.object(name, 0));
    let steps = vec![
        create("a"),
        create("b"),
        create("c"),
        Step::get(format!("{path}?limit=1")),
        create("d"),
        Step::new("UNTIL 410", format!("{path}?resourceVersion={{list}}&resourceVersionMatch=Exact")),
        Step::new("WATCH", format!("{path}?watch=true&resourceVersion={{old:ConfigMap/a}}&timeoutSeconds=5")),
        Step::get(format!("{path}?limit=1&continue={{continue}}")),
        Step::get(format!("{path}?limit=1&continue={{continue}}")),
        Step::get(format!("{path}?continue={{continue}}")),
    ];
    Sequence { name: "compacted history".to_owned(), steps }
}

fn namespaces() -> Vec<Step> {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"seq": "{ns}"}}});
    let path = "/api/v1/namespaces/{ns}-x";
    let all = "/api/v1/namespaces?labelSelector=seq%3D{ns}";
    vec![
        Step::get(all),
        Step {
            last: Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"seq": "{ns}"}}})),
            ..Step::new("WATCH", format!("{all}&watch=true&resourceVersion={{list}}"))
        },
        Step::post("/api/v1/namespaces", namespace("{ns}-x")),
        Step::post("/api/v1/namespaces", namespace("{ns}-x")),
        Step::post("/api/v1/namespaces", namespace("Not.A.Label")),
        Step::post("/api/v1/namespaces", namespace(&"n".repeat(64))),
        Step::get(path),
        Step::patch(path, "merge-patch", json!({"metadata": {"labels": {"k": "v"}}})),
        Step::patch(path, "merge-patch", json!({"spec": {"finalizers": []}})),
        Step::patch(&format!("{path}/status")[..], "merge-patch", json!({"status": {"phase": "Terminating"}})),
        Step::put(path, namespace("{ns}-x")),
        Step::get(all),
        Step::post("/api/v1/namespaces?dryRun=All", namespace("{ns}-y")),
        Step::delete("/api/v1/namespaces"),
        Step::delete("/api/v1/namespaces/{ns}-absent"),
        Step::delete("/api/v1/namespaces/default"),
        Step::delete(format!("{path}?dryRun=All")),
    ]
}

/// Requests in a deleted namespace. These requests are a sequence of their own, because a namespace controller soon
/// removes the namespace.
fn deleted_namespace() -> Vec<Step> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}-x"}});
    vec![Step::post("/api/v1/namespaces", namespace), Step::delete("/api/v1/namespaces/{ns}-x")]
}

fn terminating() -> Vec<Step> {
    let inside = Kind::ConfigMap.path_in("{ns}-x");
    vec![
        Step::post(
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}-x"}}),
        ),
        // This object holds the namespace that a controller would empty.
        Step::post(&inside[..], Kind::ConfigMap.object("held", 2)),
        Step::delete("/api/v1/namespaces/{ns}-x"),
        Step::post(&inside[..], Kind::ConfigMap.object("late", 0)),
        Step::get("/api/v1/namespaces/{ns}-x"),
        Step::post(&inside[..], Kind::ConfigMap.object("held", 0)),
    ]
}

fn propagation(policy: &str) -> Vec<Step> {
    let path = Kind::Deployment.path();
    vec![
        Step::post(&path[..], Kind::Deployment.object("a", 0)),
        Step::delete(format!("{path}/a?propagationPolicy={policy}")),
    ]
}

fn future() -> Vec<Step> {
    let path = Kind::ConfigMap.path();
    vec![
        Step::get(format!("{path}?resourceVersion=99999999")),
        Step::get(format!("{path}?resourceVersion=99999999&resourceVersionMatch=NotOlderThan")),
        Step::get(format!("{path}/a?resourceVersion=99999999")),
    ]
}

fn pages() -> Vec<Step> {
    let path = Kind::ConfigMap.path();
    let create = |name: &str, variant| Step::post(Kind::ConfigMap.path(), Kind::ConfigMap.object(name, variant));
    vec![
        create("d", 0),
        create("b", 3),
        create("a", 3),
        create("c", 3),
        Step::get(format!("{path}?limit=2")),
        create("e", 0),
        Step::delete(format!("{path}/c")),
        Step::get(format!("{path}?limit=1&continue={{continue}}")),
        Step::get(format!("{path}?continue={{continue}}")),
        Step::get(format!("{path}?limit=2&labelSelector=tier%3Dfront")),
        Step::get(format!("{path}?limit=2&labelSelector=tier%3Dfront&continue={{continue}}")),
        Step::get(format!("{path}?limit=4")),
        Step::get(format!("{path}?limit=1&resourceVersion=0")),
    ]
}

fn bound_pod() -> Vec<Step> {
    let path = Kind::Pod.path();
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    vec![
        Step::post(&path[..], Kind::Pod.object("a", 0)),
        Step::post(format!("{path}/a/binding"), binding.clone()),
        Step::post(format!("{path}/a/binding"), binding),
        Step::get(format!("{path}/a")),
        Step::get(format!("{path}?fieldSelector=spec.nodeName%3Dn1")),
        // A graceful deletion, which a kubelet would have to confirm.
        Step::delete(format!("{path}/a")),
        Step::get(format!("{path}/a")),
        Step::delete(format!("{path}/a?gracePeriodSeconds=0")),
        Step::get(format!("{path}/a")),
        Step::post(&path[..], Kind::Pod.object("b", 0)),
        Step::post(
            format!("{path}/b/eviction"),
            json!({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "b"}}),
        ),
        Step::get(format!("{path}/b")),
    ]
}

/// A Pod that is bound to a node.
fn bound(name: &str) -> serde_json::Value {
    let mut pod = Kind::Pod.object(name, 0);
    pod["spec"]["nodeName"] = json!("n1");
    pod
}

fn graceful_pods() -> Vec<Step> {
    let path = Kind::Pod.path();
    let options = |value: serde_json::Value| {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        for (key, value) in value.as_object().into_iter().flatten() {
            options[key] = value.clone();
        }
        options
    };
    let held = |name: &str| {
        let mut pod = bound(name);
        pod["metadata"]["finalizers"] = json!(["example.com/hold"]);
        pod
    };
    let eviction = json!({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "e"}});
    vec![
        Step::get(&path[..]),
        Step {
            last: Some(Kind::Pod.object("", 0)),
            ..Step::new("WATCH", format!("{path}?watch=true&resourceVersion={{list}}"))
        },
        Step::post(&path[..], bound("a")),
        Step::delete(format!("{path}/a?dryRun=All")),
        Step::delete(format!("{path}/a?gracePeriodSeconds=20")),
        Step::delete(format!("{path}/a?gracePeriodSeconds=40")),
        Step::delete(format!("{path}/a")),
        Step::delete(format!("{path}/a?gracePeriodSeconds=5")),
        Step::delete(format!("{path}/a?gracePeriodSeconds=0&dryRun=All")),
        Step::patch(format!("{path}/a"), "merge-patch", json!({"metadata": {"labels": {"late": "1"}}})),
        Step::patch(format!("{path}/a/status"), "merge-patch", json!({"status": {"phase": "Succeeded"}})),
        Step::delete(format!("{path}/a")).with_body(options(json!({"gracePeriodSeconds": 0}))),
        Step::get(format!("{path}/a")),
        Step::post(&path[..], held("b")),
        Step::delete(format!("{path}/b")),
        Step::delete(format!("{path}/b?gracePeriodSeconds=0")),
        Step::patch(format!("{path}/b"), "merge-patch", json!({"metadata": {"finalizers": null}})),
        Step::get(format!("{path}/b")),
        Step::post(&path[..], held("c")),
        Step::delete(format!("{path}/c")),
        Step::patch(format!("{path}/c"), "merge-patch", json!({"metadata": {"finalizers": null}})),
        Step::get(format!("{path}/c")),
        Step::post(&path[..], bound("d")),
        Step::patch(format!("{path}/d/status"), "merge-patch", json!({"status": {"phase": "Failed"}})),
        Step::delete(format!("{path}/d")),
        Step::get(format!("{path}/d")),
        Step::post(&path[..], bound("e")),
        Step::post(format!("{path}/e/eviction"), eviction),
        Step::get(format!("{path}/e")),
        Step::delete(format!("{path}/e?gracePeriodSeconds=9")).with_body(options(json!({}))),
        Step::delete(format!("{path}/e")).with_body(options(json!({"gracePeriodSeconds": 0}))),
        Step::get(format!("{path}/e")),
    ]
}

fn graceful_collection() -> Vec<Step> {
    let path = Kind::Pod.path();
    vec![
        Step::post(&path[..], bound("a")),
        Step::post(&path[..], Kind::Pod.object("b", 0)),
        Step::delete(&path[..]),
        Step::get(&path[..]),
        Step::delete(format!("{path}?gracePeriodSeconds=0")),
        Step::get(&path[..]),
    ]
}

fn pages_and_writes() -> Vec<Step> {
    let path = Kind::Widget.path();
    let (one, table) = (
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
    );
    let create = |name: &str| Step::post(Kind::Widget.path(), Kind::Widget.object(name, 0));
    let next = |limit: u8| Step::get(format!("{}?limit={limit}&continue={{continue}}", Kind::Widget.path()));
    vec![
        create("a"),
        create("b"),
        create("c"),
        create("d"),
        create("e"),
        Step::get(format!("{path}?limit=1")),
        Step::patch(format!("{path}/b"), "merge-patch", json!({"spec": {"image": "changed:1"}})),
        Step::delete(format!("{path}/c")),
        next(1).accepting(table),
        create("bb"),
        Step::delete(format!("{path}/d")),
        next(1).accepting(one),
        Step::put(format!("{path}/e"), Kind::Widget.object("e", 1)),
        next(1),
        next(5),
        Step::get(format!("{path}?limit=2")).accepting(table),
        Step::get(format!("{path}?limit=2&fieldSelector=metadata.name%3De")),
        Step::get(format!("{path}?limit=2")).accepting(one),
    ]
}

fn collection() -> Vec<Step> {
    let path = Kind::ConfigMap.path();
    let create = |name: &str, variant| Step::post(Kind::ConfigMap.path(), Kind::ConfigMap.object(name, variant));
    vec![
        Step::get(&path[..]),
        Step {
            last: Some(Kind::ConfigMap.object("", 0)),
            ..Step::new("WATCH", format!("{path}?watch=true&resourceVersion={{list}}&labelSelector=tier%3Dback"))
        },
        create("a", 0),
        create("b", 1),
        create("c", 4),
        create("d", 7),
        Step::delete(format!("{path}?labelSelector=tier%3Dback&fieldSelector=metadata.name%3Db")),
        Step::delete(format!("{path}?labelSelector=tier%3Dback")),
        Step::delete(format!("{path}?resourceVersion={{list}}")),
        Step::get(&path[..]),
        Step::delete(&path[..]).accepting("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
        Step::delete("/api/v1/configmaps"),
        Step::delete(path.replace("{ns}", "nowhere-at-all")),
    ]
}

fn scale() -> Vec<Step> {
    let path = format!("{}/a/scale", Kind::Deployment.path());
    let scale = |replicas: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "{ns}"}, "spec": {"replicas": replicas}});
    let with = |key: &str, value: serde_json::Value| {
        let mut scale = scale(3);
        scale["metadata"][key] = value;
        Step::put(&path[..], scale)
    };
    let merged = |patch: serde_json::Value| Step::patch(&path[..], "merge-patch", patch);
    let mut other_kind = scale(3);
    other_kind["kind"] = json!("Deployment");
    let mut text = scale(3);
    text["spec"]["replicas"] = json!("3");
    vec![
        Step::get(&path[..]),
        Step::post(Kind::Deployment.path(), Kind::Deployment.object("a", 0)),
        Step::get(&path[..]),
        Step::put(&path[..], scale(4)),
        merged(json!({"spec": {"replicas": 2}})),
        Step::put(&path[..], scale(-1)),
        Step::put(&path[..], other_kind),
        Step::put(&path[..], text),
        with("uid", json!("3f2a4a52-0000-4000-8000-000000000000")),
        with("resourceVersion", json!("{old:Deployment/a}")),
        with("namespace", json!("elsewhere")),
        with("labels", json!({"new": "1"})),
        merged(json!({"spec": {"replicas": "x"}})),
        merged(json!({"spec": {"replicas": null}})),
        merged(json!({"metadata": {"name": "other"}})),
        merged(json!({"metadata": {"uid": "3f2a4a52-0000-4000-8000-000000000000"}, "spec": {"replicas": 5}})),
        merged(json!({"metadata": {"resourceVersion": "{old:Deployment/a}"}})),
        Step::patch(&path[..], "strategic-merge-patch", json!({"spec": {"replicas": 3, "odd": 1}, "odd": 1})),
        Step::patch(&path[..], "json-patch", json!([{"op": "replace", "path": "/spec/replicas", "value": 2}])),
        Step::get(format!("{}/a", Kind::Deployment.path())),
        Step::get(format!("{}/a/scale", Kind::ConfigMap.path())),
    ]
}

fn finalizers() -> Vec<Step> {
    let path = Kind::ConfigMap.path();
    let remove = json!({"metadata": {"finalizers": null}});
    vec![
        Step::get(&path[..]),
        Step {
            last: Some(Kind::ConfigMap.object("", 0)),
            ..Step::new("WATCH", format!("{path}?watch=true&resourceVersion={{list}}"))
        },
        Step::post(&path[..], Kind::ConfigMap.object("a", 2)),
        Step::delete(format!("{path}/a")),
        Step::delete(format!("{path}/a")),
        Step::post(&path[..], Kind::ConfigMap.object("a", 0)),
        Step::patch(format!("{path}/a"), "merge-patch", json!({"data": {"late": "1"}})),
        Step::patch(
            format!("{path}/a"),
            "merge-patch",
            json!({"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}}),
        ),
        Step::patch(format!("{path}/a?dryRun=All"), "merge-patch", remove.clone()),
        Step::get(format!("{path}/a")),
        Step::patch(format!("{path}/a"), "merge-patch", remove),
        Step::get(format!("{path}/a")),
    ]
}

fn conflicts() -> Vec<Step> {
    let path = format!("{}/a", Kind::ConfigMap.path());
    let data =
        |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
    vec![
        Step::apply(format!("{path}?fieldManager=one"), data("1")),
        Step::apply(format!("{path}?fieldManager=two"), data("1")),
        Step::apply(format!("{path}?fieldManager=two"), data("2")),
        Step::apply(format!("{path}?fieldManager=two&force=true"), data("2")),
        Step::apply(
            format!("{path}?fieldManager=one"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
        ),
        Step::apply(
            format!("{path}?fieldManager=two"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
        ),
        Step::apply(format!("{path}?fieldManager=two&dryRun=All"), data("3")),
        Step::get(path),
    ]
}

fn mistyped() -> Vec<Step> {
    let path = format!("{}/a", Kind::Deployment.path());
    let by = |manager: &str, deployment: serde_json::Value| {
        Step::apply(format!("{path}?fieldManager={manager}"), deployment)
    };
    let with = |key: &str, value: serde_json::Value| {
        let mut deployment = Kind::Deployment.object("a", 0);
        deployment[key] = value;
        deployment
    };
    let containers = |containers: serde_json::Value| {
        let mut deployment = Kind::Deployment.object("a", 0);
        deployment["spec"]["template"]["spec"]["containers"] = containers;
        deployment
    };
    let ports = |ports: serde_json::Value| containers(json!([{"name": "c", "image": "i:1", "ports": ports}]));
    vec![
        by("one", with("metadata", json!({}))),
        by("one", with("odd", json!(1))),
        by("one", Kind::Deployment.object("a", 0)),
        by("one", with("metadata", json!({"labels": {"no": "name"}}))),
        by("one", with("odd", json!(1))),
        by("one", with("metadata", json!({"name": "a", "odd": {"x": 1}}))),
        by("two", with("spec", json!({"replicas": "x"}))),
        by("two", with("spec", json!({"replicas": 1, "odd": 1}))),
        by("two", with("spec", json!({"template": "text"}))),
        by("two", containers(json!([{"name": "c", "odd": 1}]))),
        by("two", containers(json!([{"name": "c"}, {"name": "c"}]))),
        by("two", containers(json!([{"image": "i:1"}]))),
        by("three", ports(json!([{"containerPort": 53}, {"containerPort": 53, "protocol": "TCP"}]))),
        by("three", ports(json!([{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]))),
        Step::get(path),
    ]
}
