//! The defaults of volume sources ("Kubernetes API reference", Config and Storage Resources).

use serde_json::{Value, json};

use crate::fields::set;

/// Fills in defaults of volume sources that the published types lack, for a pod or a `PersistentVolume`.
pub(in crate::kinds) fn source(volume: &mut Value) {
    for (source, key, default) in [("hostPath", "type", json!("")), ("azureDisk", "readOnly", json!(false))] {
        if let Some(found) = volume.get_mut(source).filter(|found| found.is_object()) {
            set(found, &[], key, default);
        }
    }
}
