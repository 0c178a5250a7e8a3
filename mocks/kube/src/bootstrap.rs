//! The objects that a real cluster puts into every new namespace: the service account `default`, and the config map
//! `kube-root-ca.crt` with the certificate of the cluster's certificate authority. The namespace `default` also has the
//! service `kubernetes`.
//!
//! The server creates the objects in each new namespace, and again after a deletion, as two controllers of
//! kube-controller-manager do. The task of `janitor` runs this code, only with `Config::furnished_namespaces`.

use facts::Change;
use mock_objects::catalogue::Resource;
use mock_objects::kinds::Meaning;
use mock_store::RawCommit;
use serde_json::{Value, json};

use super::cluster::Cluster;

const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";

/// Makes the missing objects after a commit that created a namespace or deleted one of the objects that every namespace
/// has.
pub(crate) fn follow(cluster: &Cluster, resource: &Resource, commit: &RawCommit) {
    if cluster.root_ca.is_none() {
        return;
    }
    let identity = &commit.identity;
    match (resource.rules.meaning, commit.change) {
        (Meaning::Namespace, Change::Added) => namespace(cluster, &identity.name),
        (Meaning::ServiceAccount, Change::Deleted) if &*identity.name == ACCOUNT => {
            namespace(cluster, &identity.namespace);
        }
        (Meaning::ConfigMap, Change::Deleted) if &*identity.name == ROOT_CA => namespace(cluster, &identity.namespace),
        _ => {}
    }
}

/// Makes the missing objects of a namespace, unless the namespace is being deleted.
pub(crate) fn namespace(cluster: &Cluster, name: &str) {
    if cluster.alone && name == "default" {
        let _ = cluster.seed(own_service());
    }
    let Some(root_ca) = &cluster.root_ca else { return };
    let catalogue = cluster.catalogue();
    let namespace = catalogue.by_full_name("namespaces").and_then(|resource| cluster.get(resource, "", name));
    if namespace.is_none_or(|namespace| namespace.facts().finalizing) {
        return;
    }
    let metadata = |object: &str| json!({"name": object, "namespace": name});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(ACCOUNT)});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(ROOT_CA), "data": {"ca.crt": root_ca},
    });
    let mut objects = vec![account, map];
    if name == "default" {
        objects.push(own_service());
    }
    for object in objects {
        // An existing object stays unchanged.
        let _ = cluster.seed(object);
    }
}

/// The service `kubernetes`, through which pods reach the API server.
fn own_service() -> Value {
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    })
}
