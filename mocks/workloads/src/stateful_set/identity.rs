//! The names of a `StatefulSet`'s Pods and of their claims.

use serde_json::{Value, json};

use super::REVISION;
use crate::fields::{list, map, name, namespace, text};
use crate::kind::Kind;
use crate::template::{self, set};

/// The number at the end of a Pod's name.
pub(super) fn ordinal(set: &Value, pod: &str) -> Option<i64> {
    pod.strip_prefix(name(set))?.strip_prefix('-')?.parse().ok()
}

fn claim_name(of: &Value, set: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", name(of), name(set))
}

pub(super) fn claims(set: &Value, ordinal: i64) -> Vec<Value> {
    let claims = list(set, "/spec/volumeClaimTemplates").iter().map(|of| {
        let mut labels = map(of, "/metadata/labels");
        labels.extend(map(set, "/spec/selector/matchLabels"));
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim_name(of, set, ordinal), "namespace": namespace(set), "labels": labels},
            "spec": of["spec"],
        });
        let annotations = map(of, "/metadata/annotations");
        if !annotations.is_empty() {
            claim["metadata"]["annotations"] = Value::Object(annotations);
        }
        claim
    });
    claims.collect()
}

/// The Pod with this number, made from the template of a revision.
pub(super) fn pod(of: &Value, revision: &Value, ordinal: i64) -> Value {
    let mut template = revision["data"]["spec"]["template"].clone();
    if let Some(template) = template.as_object_mut() {
        template.remove("$patch");
    }
    let pod_name = format!("{}-{ordinal}", name(of));
    let mut pod = template::pod(of, Kind::StatefulSet, &template);
    pod["metadata"]["generateName"] = Value::from(format!("{}-", name(of)));
    pod["metadata"]["name"] = Value::from(&*pod_name);
    set(&mut pod, "labels", "statefulset.kubernetes.io/pod-name", &pod_name);
    set(&mut pod, "labels", "apps.kubernetes.io/pod-index", &ordinal.to_string());
    set(&mut pod, "labels", REVISION, name(revision));
    pod["spec"]["hostname"] = Value::from(pod_name);
    pod["spec"]["subdomain"] = of["spec"]["serviceName"].clone();
    let claims = list(of, "/spec/volumeClaimTemplates");
    let mut volumes: Vec<Value> = claims
        .iter()
        .map(|claim| json!({"name": name(claim), "persistentVolumeClaim": {"claimName": claim_name(claim, of, ordinal)}}))
        .collect();
    let is_claimed = |volume: &&Value| claims.iter().any(|claim| name(claim) == text(volume, "/name"));
    volumes.extend(list(&pod, "/spec/volumes").iter().filter(|volume| !is_claimed(volume)).cloned());
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = Value::from(volumes);
    }
    pod
}
