//! Where a container has its volumes: as folders, or as devices.

use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::texts::{climbs, descending};
use super::volumes::Known;
use super::{has, items, text};
use crate::status::Cause;

/// `volumeMounts` and `volumeDevices` of a container.
pub(super) fn check(container: &Value, known: &Known<'_>, at: At<'_>, causes: &mut Vec<Cause>) {
    folders(container, known, at.field("volumeMounts"), causes);
    devices(container, known, at.field("volumeDevices"), causes);
}

fn folders(container: &Value, known: &Known<'_>, list: At<'_>, causes: &mut Vec<Cause>) {
    let (mounts, devices) = (items(container, "volumeMounts"), items(container, "volumeDevices"));
    for (index, mount) in mounts.iter().enumerate() {
        let at = list.item(index);
        let name = causes.text_in(mount, "name", at);
        if !known.contains_key(name) {
            causes.not_found(at.field("name"), name);
        }
        let path = causes.text_in(mount, "mountPath", at);
        let mut refuse = |key: &str, why: &str| causes.invalid_text(at.field(key), text(mount, key), why);
        if mounts[..index].iter().any(|other| text(other, "mountPath") == path) {
            refuse("mountPath", "must be unique");
        }
        if devices.iter().any(|device| text(device, "name") == name) {
            refuse("name", "must not already exist in volumeDevices");
        }
        if devices.iter().any(|device| text(device, "devicePath") == path) {
            refuse("mountPath", "must not already exist as a path in volumeDevices");
        }
        let (below, by_variables) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !below.is_empty() && !by_variables.is_empty() {
            refuse("subPathExpr", "subPathExpr and subPath are mutually exclusive");
        }
        // What is wrong with these is said of the list.
        if !below.is_empty() {
            descending(below, list.field("subPath"), causes);
        }
        if !by_variables.is_empty() {
            descending(by_variables, list.field("subPathExpr"), causes);
        }
        propagation(container, mount, list, causes);
    }
}

fn propagation(container: &Value, mount: &Value, list: At<'_>, causes: &mut Vec<Cause>) {
    let at = list.field("mountPropagation");
    causes.one_of(&mount["mountPropagation"], at, &["Bidirectional", "HostToContainer", "None"]);
    let propagation = mount["mountPropagation"].as_str();
    if propagation == Some("Bidirectional") && container["securityContext"]["privileged"] != Value::Bool(true) {
        causes.forbidden(at, "Bidirectional mount propagation is available only to privileged containers");
    }
    let at = list.field("recursiveReadOnly");
    causes.one_of(&mount["recursiveReadOnly"], at, &["Disabled", "Enabled", "IfPossible"]);
    if matches!(mount["recursiveReadOnly"].as_str(), Some("Enabled" | "IfPossible")) {
        if mount["readOnly"] != Value::Bool(true) {
            causes.forbidden(at, "may only be specified when readOnly is true");
        }
        if propagation.is_some_and(|given| given != "None") {
            causes.forbidden(at, "may only be specified when mountPropagation is None or not specified");
        }
    }
}

fn devices(container: &Value, known: &Known<'_>, list: At<'_>, causes: &mut Vec<Cause>) {
    let (mounts, devices) = (items(container, "volumeMounts"), items(container, "volumeDevices"));
    for (index, device) in devices.iter().enumerate() {
        let at = list.item(index);
        let before = &devices[..index];
        let name = causes.text_in(device, "name", at);
        let mut refuse = |key: &str, why: &str| causes.invalid_text(at.field(key), text(device, key), why);
        if !name.is_empty() && before.iter().any(|other| text(other, "name") == name) {
            refuse("name", "must be unique");
        }
        let volume = known.get(name);
        if volume.is_some_and(|volume| !has(volume, "persistentVolumeClaim") && !has(volume, "ephemeral")) {
            refuse("name", "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
        }
        if volume.is_none() {
            causes.not_found(at.field("name"), name);
        }
        let path = causes.text_in(device, "devicePath", at);
        let mut refuse = |key: &str, why: &str| causes.invalid_text(at.field(key), text(device, key), why);
        if before.iter().any(|other| text(other, "devicePath") == path && !climbs(path)) {
            refuse("devicePath", "must be unique");
        }
        if climbs(path) {
            refuse("devicePath", "can not contain backsteps ('..')");
        }
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            refuse("name", "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == path) {
            refuse("devicePath", "must not already exist as a path in volumeMounts");
        }
    }
}
