//! The checks of the volumes that a container mounts as folders or uses as block devices.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::texts::{climbs, descending};
use super::volumes::Known;
use super::{has, items, text};
use crate::status::Cause;

pub(super) fn check(container: &Value, known: &Known<'_>, at: At<'_>, causes: &mut Vec<Cause>) {
    folders(container, known, at.field("volumeMounts"), causes);
    devices(container, known, at.field("volumeDevices"), causes);
}

/// The values of the text field `key` in all items of a list of the container.
fn all<'a>(container: &'a Value, list: &str, key: &str) -> BTreeSet<&'a str> {
    items(container, list).iter().map(|item| text(item, key)).collect()
}

fn folders(container: &Value, known: &Known<'_>, list: At<'_>, causes: &mut Vec<Cause>) {
    let (names, paths) = (all(container, "volumeDevices", "name"), all(container, "volumeDevices", "devicePath"));
    let mut before = BTreeSet::new();
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        let at = list.item(index);
        let name = causes.text_in(mount, "name", at);
        if !known.contains_key(name) {
            causes.not_found(at.field("name"), name);
        }
        let path = causes.text_in(mount, "mountPath", at);
        let mut refuse = |key: &str, why: &str| causes.invalid_text(at.field(key), text(mount, key), why);
        if !before.insert(path) {
            refuse("mountPath", "must be unique");
        }
        if names.contains(name) {
            refuse("name", "must not already exist in volumeDevices");
        }
        if paths.contains(path) {
            refuse("mountPath", "must not already exist as a path in volumeDevices");
        }
        let (below, by_variables) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !below.is_empty() && !by_variables.is_empty() {
            refuse("subPathExpr", "subPathExpr and subPath are mutually exclusive");
        }
        // Errors in sub-paths name the list.
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
    let (names, paths) = (all(container, "volumeMounts", "name"), all(container, "volumeMounts", "mountPath"));
    let (mut names_before, mut paths_before) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in items(container, "volumeDevices").iter().enumerate() {
        let at = list.item(index);
        let name = causes.text_in(device, "name", at);
        let mut refuse = |key: &str, why: &str| causes.invalid_text(at.field(key), text(device, key), why);
        if !name.is_empty() && !names_before.insert(name) {
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
        if climbs(path) {
            refuse("devicePath", "can not contain backsteps ('..')");
        } else if !paths_before.insert(path) {
            refuse("devicePath", "must be unique");
        }
        if names.contains(name) {
            refuse("name", "must not already exist in volumeMounts");
        }
        if paths.contains(path) {
            refuse("devicePath", "must not already exist as a path in volumeMounts");
        }
    }
}
