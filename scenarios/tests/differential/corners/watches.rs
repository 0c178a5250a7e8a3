//! Sequences of requests with watches: bookmarks, and objects that begin or cease to match a selector.

use serde_json::json;

use crate::generator::Kind;
use crate::sequence::{Sequence, Step};

/// The query parameter of streaming lists (KEP-3157).
const INITIAL: &str = "sendInitialEvents=true";

pub fn all() -> Vec<Sequence> {
    let one = |name: &str, steps: Vec<Step>| Sequence { name: name.to_owned(), steps };
    let mut all: Vec<Sequence> = [Kind::ConfigMap, Kind::Widget, Kind::Lease]
        .into_iter()
        .map(|kind| one("a bookmark before the end", bookmark(kind)))
        .collect();
    all.push(one("in and out of a selection by labels", by_labels()));
    all.push(one("in and out of a selection by fields", by_fields()));
    all.push(one("other forms of a watch", forms()));
    all
}

fn bookmark(kind: Kind) -> Vec<Step> {
    let path = kind.path();
    let ends =
        |more: &str| Step::new("WATCH", format!("{path}?watch=true&timeoutSeconds=4&allowWatchBookmarks=true{more}"));
    vec![
        Step::post(&path[..], kind.object("a", 0)),
        Step::get(&path[..]),
        ends("&resourceVersion={list}"),
        ends("&resourceVersion={list}&labelSelector=tier%3Dfront"),
        ends("&resourceVersion={list}").accepting("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
        Step::patch(format!("{path}/a"), "merge-patch", json!({"metadata": {"labels": {"tier": "back"}}})),
    ]
}

fn by_labels() -> Vec<Step> {
    let path = Kind::Widget.path();
    let watch = |selector: &str| Step {
        last: Some(Kind::Widget.object("", 0)),
        ..Step::new("WATCH", format!("{path}?watch=true&resourceVersion={{list}}&labelSelector={selector}"))
    };
    let label = |labels: serde_json::Value| {
        Step::patch(format!("{path}/a"), "merge-patch", json!({"metadata": {"labels": labels}}))
    };
    vec![
        Step::get(&path[..]),
        watch("tier%3Dfront"),
        watch("tier!%3Dfront"),
        watch("tier"),
        watch("!extra"),
        watch("tier+in+(front,back),extra"),
        Step::post(&path[..], Kind::Widget.object("a", 0)),
        label(json!({"tier": "back"})),
        label(json!({"extra": "1"})),
        label(json!({"tier": "front", "extra": "2"})),
        label(json!({"tier": null})),
        label(json!({"tier": "front", "extra": null})),
        Step::delete(format!("{path}/a")),
    ]
}

fn by_fields() -> Vec<Step> {
    let path = Kind::Pod.path();
    let watch = |selector: &str| Step {
        last: Some(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}),
        ),
        ..Step::new("WATCH", format!("{path}?watch=true&resourceVersion={{list}}&fieldSelector={selector}"))
    };
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    let phase =
        |phase: &str| Step::patch(format!("{path}/a/status"), "merge-patch", json!({"status": {"phase": phase}}));
    vec![
        Step::get(&path[..]),
        watch("spec.nodeName%3Dn1"),
        watch("status.phase!%3DRunning"),
        watch("spec.nodeName%3Dn1,status.phase!%3DFailed"),
        Step::post(&path[..], Kind::Pod.object("a", 0)),
        Step::post(format!("{path}/a/binding"), binding),
        phase("Running"),
        phase("Failed"),
        Step::delete(format!("{path}/a")),
    ]
}

fn forms() -> Vec<Step> {
    let path = Kind::ConfigMap.path();
    let watch = |accept: &str| Step {
        last: Some(Kind::ConfigMap.object("", 0)),
        ..Step::new("WATCH", format!("{path}?watch=true&resourceVersion={{list}}")).accepting(accept)
    };
    vec![
        Step::get(&path[..]),
        watch("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
        watch("application/json;as=Table;g=meta.k8s.io;v=v1"),
        Step::post(&path[..], Kind::ConfigMap.object("a", 0)),
        Step::patch(format!("{path}/a"), "merge-patch", json!({"data": {"a": "2"}})),
        Step::delete(format!("{path}/a")),
        Step::new("WATCH", format!("{path}?watch=true&timeoutSeconds=1&resourceVersion={{list}}")),
        Step::post(&path[..], Kind::ConfigMap.object("b", 0)),
        Step::new("WATCH", format!("{path}?watch=true&timeoutSeconds=1&{INITIAL}&resourceVersionMatch=NotOlderThan")),
        Step::get(format!("{path}?watch=true&{INITIAL}")),
    ]
}
