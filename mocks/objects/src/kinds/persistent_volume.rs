//! `PersistentVolume`: storage that outlives pods. New volumes get no protection finalizer, because no controller here
//! would remove it.

mod check;

use serde_json::{Value, json};

use super::print::{Cells, Row, UNSET};
use super::{Generation, Kind, pod_spec};
use crate::fields::set;

pub(super) const PERSISTENT_VOLUME: Kind = Kind {
    about: "A piece of storage that outlives pods.",
    cells: CELLS,
    defaults,
    new: |value| set(value, &["status"], "phase", json!("Pending")),
    check: check::volume,
    check_update: check::update,
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
