//! `PersistentVolumeClaim`: a wish for storage, and the volume that it was given. The finalizer that protects one in use is left
//! out: nobody here would take it away.

use serde_json::{Value, json};

use super::persistent_volume::{access, check_access_modes, class, phase};
use super::print::{Printer, UNSET};
use super::{Causes, Generation, Kind, Meaning};
use crate::fields::set;
use crate::status::Cause;

pub(super) const PERSISTENT_VOLUME_CLAIM: Kind = Kind {
    short_names: &["pvc"],
    about: "A wish for storage, and the volume that it was given.",
    status: true,
    messages: &[
        "PersistentVolumeClaim 1:metadata:ObjectMeta 2:spec:PersistentVolumeClaimSpec \
         3:status:PersistentVolumeClaimStatus",
        "PersistentVolumeClaimStatus 1:phase:s 2:accessModes:[s] 3:capacity:{Q} \
         4:conditions:[PersistentVolumeClaimCondition] 5:allocatedResources:{Q} 7:allocatedResourceStatuses:{s} \
         8:currentVolumeAttributesClassName:s?",
        "PersistentVolumeClaimCondition 1:type:s! 2:status:s! 3:lastProbeTime:T 4:lastTransitionTime:T 5:reason:s \
         6:message:s",
    ],
    printer: PRINTER,
    defaults,
    new: |value| set(value, &["status"], "phase", json!("Pending")),
    check,
    generation: Generation::None,
    shown_when_deleted: true,
    meaning: Meaning::Claim,
    ..Kind::namespaced("", &["v1"], "persistentvolumeclaims", "PersistentVolumeClaim")
};

pub(super) fn defaults(value: &mut Value) {
    set(value, &["spec"], "volumeMode", json!("Filesystem"));
}

fn check(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    check_access_modes(spec, causes);
    if spec["resources"]["requests"]["storage"].is_null() {
        causes.push(Cause::required("spec.resources[storage]", ""));
    }
}

const PRINTER: Printer = Printer {
    columns: "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode+",
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
