//! The columns of volumes, claims and those who provide them.

use serde_json::Value;

use super::print::{Printer, Row, UNSET};

const NAME: (&str, &str, i64) = ("Name", "string", 0);
const AGE: (&str, &str, i64) = ("Age", "string", 0);
/// The claim's or volume's class before `storageClassName` was a field.
const OLD_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

pub(super) const CLAIM: Printer = Printer {
    columns: &[
        NAME,
        ("Status", "string", 0),
        ("Volume", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        AGE,
        ("VolumeMode", "string", 1),
    ],
    cells: |row| {
        // Only a claim that has a volume has its room.
        let bound = !row.text("/spec/volumeName").is_empty();
        let (capacity, modes) = if bound {
            (row.text("/status/capacity/storage"), access(row, "/status/accessModes"))
        } else {
            ("", String::new())
        };
        vec![
            row.name(),
            phase(row),
            row.text("/spec/volumeName").into(),
            capacity.into(),
            modes.into(),
            class(row),
            row.text_or("/spec/volumeAttributesClassName", UNSET),
            row.age(),
            row.text_or("/spec/volumeMode", UNSET),
        ]
    },
};

pub(super) const VOLUME: Printer = Printer {
    columns: &[
        NAME,
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("Reclaim Policy", "string", 0),
        ("Status", "string", 0),
        ("Claim", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Reason", "string", 0),
        AGE,
        ("VolumeMode", "string", 1),
    ],
    cells: |row| {
        let claim = match row.text("/spec/claimRef/name") {
            "" => String::new(),
            name => format!("{}/{name}", row.text("/spec/claimRef/namespace")),
        };
        vec![
            row.name(),
            row.text("/spec/capacity/storage").into(),
            access(row, "/spec/accessModes").into(),
            row.text("/spec/persistentVolumeReclaimPolicy").into(),
            phase(row),
            claim.into(),
            class(row),
            row.text_or("/spec/volumeAttributesClassName", UNSET),
            row.text("/status/reason").into(),
            row.age(),
            row.text_or("/spec/volumeMode", UNSET),
        ]
    },
};

pub(super) const CLASS: Printer = Printer {
    columns: &[
        NAME,
        ("Provisioner", "string", 0),
        ("ReclaimPolicy", "string", 0),
        ("VolumeBindingMode", "string", 0),
        ("AllowVolumeExpansion", "string", 0),
        AGE,
    ],
    cells: |row| {
        let default = row.text("/metadata/annotations/storageclass.kubernetes.io~1is-default-class") == "true";
        let name = row.text("/metadata/name");
        vec![
            if default { format!("{name} (default)").into() } else { name.into() },
            row.text("/provisioner").into(),
            row.text_or("/reclaimPolicy", "Delete"),
            row.text_or("/volumeBindingMode", "Immediate"),
            row.flag("/allowVolumeExpansion"),
            row.age(),
        ]
    },
};

pub(super) const ATTACHMENT: Printer = Printer {
    columns: &[
        NAME,
        ("Attacher", "string", 0),
        ("PV", "string", 0),
        ("Node", "string", 0),
        ("Attached", "boolean", 0),
        AGE,
    ],
    cells: |row| {
        vec![
            row.name(),
            row.text("/spec/attacher").into(),
            row.text("/spec/source/persistentVolumeName").into(),
            row.text("/spec/nodeName").into(),
            row.flag("/status/attached"),
            row.age(),
        ]
    },
};

pub(super) const DRIVER: Printer = Printer {
    columns: &[
        NAME,
        ("AttachRequired", "boolean", 0),
        ("PodInfoOnMount", "boolean", 0),
        ("StorageCapacity", "boolean", 0),
        ("TokenRequests", "string", 0),
        ("RequiresRepublish", "boolean", 0),
        ("Modes", "string", 0),
        AGE,
    ],
    cells: |row| {
        let list = |pointer: &str, key: Option<&str>| {
            let texts = row.items(pointer).filter_map(|item| key.map_or(item, |key| &item[key]).as_str());
            texts.collect::<Vec<_>>().join(",")
        };
        let or_unset = |text: String| if text.is_empty() { UNSET.into() } else { Value::from(text) };
        vec![
            row.name(),
            row.at("/spec/attachRequired").cloned().unwrap_or(Value::Bool(true)),
            row.flag("/spec/podInfoOnMount"),
            row.flag("/spec/storageCapacity"),
            or_unset(list("/spec/tokenRequests", Some("audience"))),
            row.flag("/spec/requiresRepublish"),
            or_unset(list("/spec/volumeLifecycleModes", None)),
            row.age(),
        ]
    },
};

pub(super) const NODE_DRIVERS: Printer = Printer {
    columns: &[NAME, ("Drivers", "integer", 0), AGE],
    cells: |row| vec![row.name(), row.items("/spec/drivers").len().into(), row.age()],
};

fn phase(row: &Row<'_>) -> Value {
    if row.is_deleting() { "Terminating" } else { row.text("/status/phase") }.into()
}

fn class(row: &Row<'_>) -> Value {
    match row.text(OLD_CLASS) {
        "" => row.text("/spec/storageClassName").into(),
        old => old.into(),
    }
}

/// Access modes in the short form, in a fixed order.
fn access(row: &Row<'_>, pointer: &str) -> String {
    let has = |mode: &str| row.items(pointer).any(|one| one == mode);
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    short.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}
