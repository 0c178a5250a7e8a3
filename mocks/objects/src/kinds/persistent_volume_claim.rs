//! `PersistentVolumeClaim`: a request for storage, and the volume that fulfils it. New claims get no protection
//! finalizer, because no controller here would remove it.

use mock_cel::Quantity;
use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::persistent_volume::{access, class, phase};
use super::print::{Cells, UNSET};
use super::{Causes, Generation, Kind, Meaning, pod_spec};
use crate::fields::set;

pub(super) const PERSISTENT_VOLUME_CLAIM: Kind = Kind {
    about: "A wish for storage, and the volume that it was given.",
    cells: CELLS,
    defaults: pod_spec::claim::fill,
    new,
    check: |value, causes| pod_spec::claim::check(&value["spec"], At::from("spec"), causes),
    check_update,
    generation: Generation::None,
    shown_when_deleted: true,
    meaning: Meaning::Claim,
    ..Kind::of("persistentvolumeclaims")
};

/// Sets the phase of a new claim to pending, and copies `dataSource` to `dataSourceRef` or back ("Volume populators and
/// data sources").
fn new(value: &mut Value) {
    set(value, &["status"], "phase", json!("Pending"));
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let (older, newer) = (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned());
    match (older, newer) {
        (Some(older), None) => {
            let known = |group: &Value, kind: &str| older["apiGroup"] == *group && older["kind"] == kind;
            let fits = known(&Value::Null, "PersistentVolumeClaim")
                || known(&json!("snapshot.storage.k8s.io"), "VolumeSnapshot");
            // A source that the older name cannot express is left out there.
            if fits {
                spec.insert("dataSourceRef".to_owned(), older);
            } else {
                spec.remove("dataSource");
            }
        }
        (None, Some(newer)) if newer["namespace"].is_null() => {
            spec.insert("dataSource".to_owned(), newer);
        }
        _ => {}
    }
}

/// Refuses most changes of a claim. The requested size and the attributes class of a bound claim may change.
fn check_update(new: &Value, old: &Value, causes: &mut Causes) {
    let at = At::from("spec");
    let is_bound = new["status"]["phase"] == "Bound";
    let class = "volume.beta.kubernetes.io/storage-class";
    let kept = |value: &Value| {
        let mut spec = value["spec"].clone();
        let Some(fields) = spec.as_object_mut() else { return spec };
        if old["spec"]["volumeName"].is_null() {
            fields.remove("volumeName");
        }
        if is_bound {
            fields.remove("volumeAttributesClassName");
            if let Some(Value::Object(requests)) = fields.get_mut("resources").and_then(|all| all.get_mut("requests")) {
                requests.remove("storage");
            }
        }
        // A class may be set once, as the default that did not exist before.
        let had_none = old["spec"]["storageClassName"].is_null() && old["metadata"]["annotations"][class].is_null();
        if had_none && !new["spec"]["storageClassName"].is_null() {
            fields.remove("storageClassName");
        }
        spec
    };
    if kept(new) != kept(old) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
        causes.forbidden(at, why);
    }
    let size = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).and_then(Quantity::parse);
    let asked = |value: &Value| size(value, "/spec/resources/requests/storage").unwrap_or(Quantity::whole(0));
    let has = size(old, "/status/capacity/storage").unwrap_or(Quantity::whole(0));
    if asked(new) < asked(old) && asked(new) <= has {
        let why = "field can not be less than status.capacity";
        causes.forbidden(At::from("spec.resources.requests.storage"), why);
    }
    if new["spec"]["volumeMode"] != old["spec"]["volumeMode"] {
        causes.invalid(At::from("volumeMode"), &new["spec"]["volumeMode"], "field is immutable");
    }
}

const CELLS: Cells = |row| {
    // Only a bound claim has a capacity.
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
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_may_only_grow_once_it_has_its_volume() {
        let claim = |phase: &str, size: &str, more: Value| {
            let mut spec = json!({"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", "resources": {"requests": {"storage": size}}});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"spec": spec, "status": {"phase": phase, "capacity": {"storage": "1Gi"}}})
        };
        let said = |old: &Value, new: &Value| {
            let mut causes = Vec::new();
            check_update(new, old, &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        let nothing = Vec::<String>::new();
        let (waits, bound) = (claim("Pending", "2Gi", json!({})), claim("Bound", "2Gi", json!({})));
        assert_eq!(said(&waits, &claim("Pending", "3Gi", json!({}))), ["spec"]);
        assert_eq!(said(&bound, &claim("Bound", "3Gi", json!({}))), nothing);
        assert_eq!(said(&bound, &claim("Bound", "1500Mi", json!({}))), nothing);
        assert_eq!(said(&bound, &claim("Bound", "1Gi", json!({}))), ["spec.resources.requests.storage"]);
        assert_eq!(said(&waits, &claim("Pending", "2Gi", json!({"volumeName": "v"}))), nothing);
        assert_eq!(said(&waits, &claim("Pending", "2Gi", json!({"storageClassName": "c"}))), nothing);
        assert_eq!(said(&waits, &claim("Pending", "2Gi", json!({"volumeMode": "Block"}))), ["spec", "volumeMode"]);
    }
}
