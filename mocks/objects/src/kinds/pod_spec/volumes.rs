//! The defaults of volume sources ("Kubernetes API reference", Config and Storage Resources).

use serde_json::{Value, json};

use crate::fields::set;

/// Fills in the defaults of a volume's source, in a pod or in a `PersistentVolume`.
pub(in crate::kinds) fn source(volume: &mut Value) {
    for (source, defaults) in [
        ("hostPath", &[("type", "")][..]),
        ("iscsi", &[("iscsiInterface", "default")]),
        ("rbd", &[("keyring", "/etc/ceph/keyring"), ("pool", "rbd"), ("user", "admin")]),
        ("azureDisk", &[("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")]),
        ("scaleIO", &[("fsType", "xfs"), ("storageMode", "ThinProvisioned")]),
    ] {
        let Some(found) = volume.get_mut(source).filter(|found| found.is_object()) else { continue };
        for (key, default) in defaults {
            set(found, &[], key, json!(default));
        }
        if source == "azureDisk" {
            set(found, &[], "readOnly", json!(false));
        }
    }
}
