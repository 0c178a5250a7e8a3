//! `PersistentVolume`: storage that outlives pods. New volumes get no protection finalizer, because no controller here
//! would remove it.

use serde_json::{Map, Value, json};

use super::causes::unsupported;
use super::print::{Cells, Row, UNSET};
use super::{Causes, Generation, Kind, pod_spec};
use crate::fields::set;
use crate::status::Cause;

pub(super) const PERSISTENT_VOLUME: Kind = Kind {
    about: "A piece of storage that outlives pods.",
    cells: CELLS,
    defaults,
    new: |value| set(value, &["status"], "phase", json!("Pending")),
    check,
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::of("persistentvolumes")
};

fn defaults(value: &mut Value) {
    set(value, &["spec"], "persistentVolumeReclaimPolicy", json!("Retain"));
    set(value, &["spec"], "volumeMode", json!("Filesystem"));
    if let Some(spec) = value.get_mut("spec") {
        pod_spec::fill_source(spec);
    }
}

fn check(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required("spec.accessModes", ""));
    }
    check_access_modes(spec, causes);
    let capacity = spec["capacity"].as_object();
    if capacity.is_none_or(Map::is_empty) {
        causes.push(Cause::required("spec.capacity", ""));
    }
    if capacity.is_none_or(|capacity| capacity.len() > 1 || !capacity.contains_key("storage")) {
        let shown = spec["capacity"].to_string();
        let message = format!("Unsupported value: {shown}: supported values: \"storage\"");
        causes.push(Cause { reason: "FieldValueNotSupported", field: "spec.capacity".to_owned(), message });
    }
    let plain = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    if !spec.as_object().into_iter().flatten().any(|(key, _)| !plain.contains(&key.as_str())) {
        causes.push(Cause::required("spec", "must specify a volume type"));
    }
}

fn check_access_modes(spec: &Value, causes: &mut Causes) {
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in spec["accessModes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !known.contains(&mode) {
            let allowed = known.map(|mode| format!("\"{mode}\"")).join(", ");
            causes.push(unsupported("spec.accessModes", mode, &allowed));
        }
    }
}

const CELLS: Cells = |row| {
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
};

/// The annotation with the storage class of a claim or volume, used before `storageClassName` existed.
const OLD_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

pub(super) fn phase(row: &Row<'_>) -> Value {
    if row.is_deleting() { "Terminating" } else { row.text("/status/phase") }.into()
}

pub(super) fn class(row: &Row<'_>) -> Value {
    match row.text(OLD_CLASS) {
        "" => row.text("/spec/storageClassName").into(),
        old => old.into(),
    }
}

/// The access modes of a volume or claim, abbreviated as in `RWO` and in a fixed order.
pub(super) fn access(row: &Row<'_>, pointer: &str) -> String {
    let has = |mode: &str| row.items(pointer).any(|one| one == mode);
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    short.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}
