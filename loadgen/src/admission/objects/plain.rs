//! Manifests of kinds without a pod spec. Some of these manifests contain text that looks like a pod spec; an answer
//! that changes such text is wrong. Pure: no I/O.

use base64::Engine as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::grow::Growth;
use super::{Identity, Kind};
use crate::admission::pods;
use crate::seed;

/// The manifest of a kind without a pod spec, enlarged in the fields that are large in that kind.
pub(super) fn manifest(
    kind: Kind,
    identity: &Identity,
    metadata: &Value,
    growth: &Growth,
    rng: &mut ChaCha8Rng,
) -> Value {
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata});
    match kind {
        Kind::ConfigMap if identity.name == ROOT_CA => {
            object["data"] = json!({"ca.crt": pem(rng)});
            object["metadata"] = json!({
                "name": identity.name, "namespace": identity.namespace, "annotations": {"kubernetes.io/description":
                    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints."}
            });
        }
        Kind::ConfigMap => {
            object["data"] = json!({
                "app.yaml": "server:\n  listen: :8080\n  workers: 8\nlog:\n  format: json\n",
                // A manifest inside a text value is only text.
                "worker-pod.yaml": "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: worker\n    image: worker:latest\n"
            });
            growth.files(&mut object["data"], rng);
        }
        Kind::Secret => {
            object["type"] = json!("Opaque");
            let mut text = |bytes| base64::engine::general_purpose::STANDARD.encode(seed::suffix(rng, bytes));
            // A multiple of three bytes ends without padding, so that growth can append to it.
            object["data"] = json!({"dsn": text(96), "password": text(24)});
            growth.secrets(&mut object["data"], rng);
        }
        Kind::Service => {
            object["spec"] = json!({
                "selector": selector(identity),
                "ports": [{"name": "http", "port": 80, "targetPort": "http"}, {"name": "metrics", "port": 9090, "targetPort": 9090}]
            });
            growth.annotations(&mut object["metadata"]["annotations"], rng);
        }
        Kind::CustomResourceDefinition => {
            object["spec"] = definition(identity);
            growth.schema(&mut object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"], rng);
        }
        Kind::ServiceAccount => object["metadata"] = json!({"name": identity.name, "namespace": identity.namespace}),
        _ => {
            object["metadata"]["labels"]["example.com/team"] = json!(pods::word(rng));
            growth.annotations(&mut object["metadata"]["annotations"], rng);
        }
    }
    object
}

/// The name of the `ConfigMap` that every namespace gets.
pub(in crate::admission) const ROOT_CA: &str = "kube-root-ca.crt";

/// A `CustomResourceDefinition` whose schema has properties with the names of a pod template's fields.
fn definition(identity: &Identity) -> Value {
    let plural = format!("{}s", identity.app);
    let text = || json!({"type": "string", "minLength": 1, "maxLength": 253});
    json!({
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": plural, "singular": identity.app, "kind": "Worker", "listKind": "WorkerList"},
        "versions": [{
            "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
            "additionalPrinterColumns": [{"name": "Image", "type": "string", "jsonPath": ".spec.template.spec.containers[0].image"}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "spec": {"type": "object", "description": "What is to be done: ", "properties": {
                    "image": text(),
                    "containers": {"type": "array", "items": {"type": "object", "properties": {"image": text()}}},
                    "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
                }}
            }}}
        }]
    })
}

/// A random text about as long as a CA certificate with a 2048-bit key.
fn pem(rng: &mut ChaCha8Rng) -> String {
    let lines: Vec<String> = (0..16).map(|_| seed::suffix(rng, 64)).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// The labels by which a workload finds its Pods.
pub(in crate::admission) fn selector(identity: &Identity) -> Value {
    json!({"app.kubernetes.io/name": identity.app})
}
