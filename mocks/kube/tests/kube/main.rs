//! Tests of the mock API server over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod access;
mod admission;
mod asked;
mod client;
mod connections;
mod controllers;
mod conversions;
mod definitions;
mod evictions;
mod far_end;
mod faults;
mod fields;
mod forms;
mod grace;
mod heads;
mod hostile;
mod newer;
mod objects;
mod ownership;
mod protobuf;
mod replicas;
mod rewind;
mod rules;
mod tokens;
mod watches;
mod websockets;
mod workloads;

use serde_json::{Value, json};

fn package_definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "packages.longhaul.dev"},
        "spec": {
            "group": "longhaul.dev", "scope": "Namespaced",
            "names": {"plural": "packages", "kind": "Package", "shortNames": ["pkg"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.image"}],
                "additionalPrinterColumns": [{"name": "Image", "type": "string", "jsonPath": ".spec.image"}],
            }],
        },
    })
}

const PACKAGES: &str = "/apis/longhaul.dev/v1/namespaces/default/packages";

fn package(name: &str) -> Value {
    json!({"apiVersion": "longhaul.dev/v1", "kind": "Package", "metadata": {"name": name}, "spec": {"image": "a:1"}})
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

/// A definition of a namespaced resource in the group `test.dev`.
fn definition(plural: &str, kind: &str, versions: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.test.dev")},
        "spec": {"group": "test.dev", "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": versions},
    })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}
