//! Removes pod fields of disabled features, as a real server does.
//!
//! Owns the list of the fields whose features are off by default in Kubernetes 1.34.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::fields::each;

pub(super) fn drop_disabled(spec: &mut Value) {
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("hostnameOverride");
    }
    images(spec);
    each(spec, "volumes", |volume| {
        if let Some(projected) = volume.get_mut("projected") {
            each(projected, "sources", |source| remove(source, &["clusterTrustBundle", "podCertificate"]));
        }
    });
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, |container| {
            remove(container, &["restartPolicyRules"]);
            // The policy for init containers that stay beside the others is enabled.
            if list != "initContainers" || container["restartPolicy"] != "Always" {
                remove(container, &["restartPolicy"]);
            }
            each(container, "env", |variable| {
                if let Some(from) = variable.get_mut("valueFrom") {
                    remove(from, &["fileKeyRef"]);
                }
            });
            stop_signal(container);
        });
    }
}

/// Removes volumes with an image as their source, and the mounts of these volumes.
fn images(spec: &mut Value) {
    let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) else { return };
    let name = |of: &Value| of["name"].as_str().map(str::to_owned);
    let mut gone: BTreeSet<Option<String>> = BTreeSet::new();
    volumes.retain(|volume| {
        let is_image = volume.get("image").is_some_and(|image| !image.is_null());
        if is_image {
            gone.insert(name(volume));
        }
        !is_image
    });
    if gone.is_empty() {
        return;
    }
    without_empty(spec, "volumes");
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, |container| {
            if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.retain(|mount| !gone.contains(&name(mount)));
            }
            without_empty(container, "volumeMounts");
        });
    }
}

fn stop_signal(container: &mut Value) {
    let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) else { return };
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        remove(container, &["lifecycle"]);
    }
}

fn remove(value: &mut Value, keys: &[&str]) {
    for key in keys {
        value.as_object_mut().map(|fields: &mut Map<String, Value>| fields.remove(*key));
    }
}

fn without_empty(value: &mut Value, list: &str) {
    if value.get(list).and_then(Value::as_array).is_some_and(Vec::is_empty) {
        remove(value, &[list]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_off_is_left_out() {
        let mut spec = json!({
            "hostnameOverride": "h",
            "volumes": [{"name": "i", "image": {"reference": "x"}}],
            "containers": [{"name": "c", "restartPolicy": "Always", "lifecycle": {"stopSignal": "SIGHUP"},
                "env": [{"name": "a", "valueFrom": {"fileKeyRef": {"key": "k"}}}], "volumeMounts": [{"name": "i"}, {"name": "o"}]}],
            "initContainers": [{"name": "s", "restartPolicy": "Always", "restartPolicyRules": []}, {"name": "n", "restartPolicy": "Never",
                "volumeMounts": [{"name": "i"}]}],
        });
        drop_disabled(&mut spec);
        let wanted = json!({
            "containers": [{"name": "c", "env": [{"name": "a", "valueFrom": {}}], "volumeMounts": [{"name": "o"}]}],
            "initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "n"}],
        });
        assert_eq!(spec, wanted);
    }
}
