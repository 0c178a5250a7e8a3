//! The defaults of volume sources ("Kubernetes API reference", Config and Storage Resources).

use serde_json::{Value, json};

use crate::fields::set;

/// What the published defaults of sources do not have, in a pod or in a volume of the cluster.
pub(in crate::kinds) fn source(volume: &mut Value) {
    for (source, key, default) in [("hostPath", "type", json!("")), ("azureDisk", "readOnly", json!(false))] {
        if let Some(found) = volume.get_mut(source).filter(|found| found.is_object()) {
            set(found, &[], key, default);
        }
    }
}
