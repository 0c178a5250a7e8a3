//! The simulated controller of `PersistentVolumeClaim`s and of the `PersistentVolume`s that are bound to them.
//!
//! If no volume belongs to a claim, this module makes a volume, as a provisioner does; storage classes are ignored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::fields::{is_deleting, list, map, name, namespace, seconds, text, uid};
use super::kind::{Key, Kind};
use super::scene::Scene;
use super::template::set;
use super::write::{Author, Verb};

const BY: &str = "persistent-volume-binder";
const DRIVER: &str = "mock.longhaul.dev";
const COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED: &str = "pv.kubernetes.io/provisioned-by";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn look(scene: &mut Scene<'_>, key: &Key, claim: &Value) {
    if is_deleting(claim) || text(claim, "/status/phase") == "Bound" {
        return;
    }
    if !scene.is_down(claim, (key, uid(claim)), "bound") && scene.waited(claim, "bound", scene.config.ready_after) {
        bind(scene, key, claim);
    }
}

/// Binds a claim: writes the volume first, then the claim; existing fields stay.
fn bind(scene: &mut Scene<'_>, key: &Key, claim: &Value) {
    let Some(volume) = volume_of(scene, claim) else {
        let body = provisioned(claim);
        return scene.create(BY, Kind::Volume, body);
    };
    let of = Key::new(Kind::Volume, "", name(&volume));
    if text(&volume, "/spec/claimRef/uid") != uid(claim) {
        let mut next = Value::clone(&volume);
        next["spec"]["claimRef"] = reference(claim);
        set(&mut next, "annotations", BOUND, "yes");
        return scene.update(BY, of, next);
    }
    if text(&volume, "/status/phase") != "Bound" {
        return phase_of(scene, of, "Bound");
    }
    if text(claim, "/spec/volumeName").is_empty() || super::fields::annotation(claim, COMPLETED).is_empty() {
        let mut next = claim.clone();
        if text(claim, "/spec/volumeName").is_empty() {
            next["spec"]["volumeName"] = Value::from(name(&volume));
            set(&mut next, "annotations", BOUND, "yes");
        }
        set(&mut next, "annotations", COMPLETED, "yes");
        return scene.update(BY, key.clone(), next);
    }
    let status = json!({
        "phase": "Bound", "accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"],
    });
    scene.status(BY, key.clone(), claim, status);
}

/// The volume that a claim names, or else a volume that names the claim.
fn volume_of(scene: &Scene<'_>, claim: &Value) -> Option<Arc<Value>> {
    let wanted = text(claim, "/spec/volumeName");
    if !wanted.is_empty() {
        return scene.objects.find(Kind::Volume, "", wanted).cloned();
    }
    let names = |volume: &Value| {
        let of = |key: &str| text(volume, &format!("/spec/claimRef/{key}"));
        of("name") == name(claim)
            && of("namespace") == namespace(claim)
            && matches!(of("uid"), given if given.is_empty() || given == uid(claim))
    };
    scene.objects.of_kind(Kind::Volume, None).find(|(_, volume)| names(volume)).map(|(_, volume)| volume.clone())
}

fn reference(claim: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace(claim), "name": name(claim),
        "uid": uid(claim), "resourceVersion": claim["metadata"]["resourceVersion"],
    })
}

fn provisioned(claim: &Value) -> Value {
    let class = match super::fields::annotation(claim, CLASS) {
        "" => text(claim, "/spec/storageClassName"),
        old => old,
    };
    // A claim that names its volume gets one of that name.
    let volume = match text(claim, "/spec/volumeName") {
        "" => format!("pvc-{}", uid(claim)),
        wanted => wanted.to_owned(),
    };
    let mut spec = json!({
        "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
        "accessModes": list(claim, "/spec/accessModes"), "claimRef": reference(claim),
        "persistentVolumeReclaimPolicy": "Delete", "volumeMode": claim["spec"]["volumeMode"],
        "csi": {"driver": DRIVER, "volumeHandle": uid(claim)},
    });
    if !class.is_empty() {
        spec["storageClassName"] = Value::from(class);
    }
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": volume, "annotations": {PROVISIONED: DRIVER}}, "spec": spec,
    })
}

/// Sets the phase of a volume. A volume without a claim is available; after the claim is gone, the volume is deleted or
/// released.
pub(super) fn look_at_volume(scene: &mut Scene<'_>, key: &Key, volume: &Value) {
    if is_deleting(volume) {
        return;
    }
    let phase = text(volume, "/status/phase");
    let of = map(volume, "/spec/claimRef");
    let wanted = text(volume, "/spec/claimRef/uid");
    let next = if of.is_empty() || wanted.is_empty() {
        "Available"
    } else {
        let claim = scene.objects.find(
            Kind::Claim,
            text(volume, "/spec/claimRef/namespace"),
            text(volume, "/spec/claimRef/name"),
        );
        if claim.is_some_and(|claim| uid(claim) == wanted) {
            return;
        }
        if text(volume, "/spec/persistentVolumeReclaimPolicy") == "Delete" {
            return scene.delete(BY, Kind::Volume, volume);
        }
        "Released"
    };
    if phase != next {
        phase_of(scene, key.clone(), next);
    }
}

/// Writes the phase of a volume and its transition time; a real API server sets this time by itself.
fn phase_of(scene: &mut Scene<'_>, volume: Key, phase: &str) {
    let body = json!({"status": {"phase": phase, "lastPhaseTransitionTime": seconds(scene.now)}});
    scene.write(Author::Controller(BY), volume, Verb::PatchStatus, body);
}
