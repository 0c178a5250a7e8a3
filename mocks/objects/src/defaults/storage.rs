//! What volumes, claims and their providers have without being asked ("Kubernetes API reference", Config and Storage
//! Resources). The finalizers that protect claims and volumes in use are left out: nobody here would take them away.

use serde_json::{Value, json};

use super::{set, shown_empty};

pub(super) fn claim(value: &mut Value) {
    set(value, &["spec"], "volumeMode", json!("Filesystem"));
}

pub(super) fn volume(value: &mut Value) {
    set(value, &["spec"], "persistentVolumeReclaimPolicy", json!("Retain"));
    set(value, &["spec"], "volumeMode", json!("Filesystem"));
    if let Some(spec) = value.get_mut("spec") {
        source(spec);
    }
}

pub(super) fn class(value: &mut Value) {
    set(value, &[], "reclaimPolicy", json!("Delete"));
    set(value, &[], "volumeBindingMode", json!("Immediate"));
}

pub(super) fn driver(value: &mut Value) {
    for (key, default) in [
        ("attachRequired", json!(true)),
        ("fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
        ("podInfoOnMount", json!(false)),
        ("requiresRepublish", json!(false)),
        ("seLinuxMount", json!(false)),
        ("storageCapacity", json!(false)),
        ("volumeLifecycleModes", json!(["Persistent"])),
    ] {
        set(value, &["spec"], key, default);
    }
}

pub(super) fn node_drivers(value: &mut Value) {
    shown_empty(value, &["spec"], "drivers");
}

/// The sources of volumes, in a pod or in a volume of the cluster.
pub(super) fn source(volume: &mut Value) {
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
