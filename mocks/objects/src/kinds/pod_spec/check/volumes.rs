//! The checks of a pod's volumes, each of which has one source.
//!
//! Owns the checks of the usual sources. `disks` checks sources of old storage systems, `files` checks sources with
//! files from other objects, and `claim` checks volume claims.

pub(in crate::kinds) mod claim;
mod disks;
mod files;

use std::collections::{BTreeMap, BTreeSet};

use mock_cel::Quantity;
use mock_cel::formats::{label, subdomain};
use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::texts::{descending, no_backsteps};
use super::{Pod, check_pull_policy, entries, has, items, text};
use crate::status::Cause;

/// The valid volumes of a pod by name, which containers can mount.
pub(super) type Known<'a> = BTreeMap<&'a str, &'a Value>;

/// The sources of volumes in the order of the checks. If a volume has several sources, only the first source is
/// checked.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// Checks `volumes`; returns the volumes without an error.
pub(super) fn check<'a>(pod: Pod<'a>, causes: &mut Vec<Cause>) -> Known<'a> {
    let mut known = Known::new();
    let volumes = items(pod.spec, "volumes");
    let name_of_pod = pod.alone.map_or("", |metadata| text(metadata, "name"));
    // The claims that are made for the pod.
    let made = volumes.iter().filter(|volume| has(volume, "ephemeral"));
    let made: BTreeSet<String> = made.map(|volume| format!("{name_of_pod}-{}", text(volume, "name"))).collect();
    let list = pod.at.field("volumes");
    for (index, volume) in volumes.iter().enumerate() {
        let at = list.item(index);
        let before = causes.len();
        sources(pod, volume, at, causes);
        let name = causes.text_in(volume, "name", at);
        if !name.is_empty() {
            causes.faults(at.field("name"), name, label(name));
        }
        if known.contains_key(name) {
            causes.duplicate(at.field("name"), name);
        }
        if causes.len() == before {
            known.insert(name, volume);
        }
        let claimed = text(&volume["persistentVolumeClaim"], "claimName");
        if !name_of_pod.is_empty() && has(volume, "persistentVolumeClaim") && made.contains(claimed) {
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            let at = at.field("persistentVolumeClaim");
            causes.invalid_text(at.field("claimName"), claimed, why);
        }
    }
    known
}

/// Refuses projected volumes with tokens in a pod without a service account.
pub(super) fn no_tokens(pod: Pod<'_>, causes: &mut Vec<Cause>) {
    let list = pod.at.field("volumes");
    for (index, volume) in items(pod.spec, "volumes").iter().enumerate() {
        let volume_at = list.item(index);
        let projected = volume_at.field("projected");
        let sources = projected.field("sources");
        for (number, source) in items(&volume["projected"], "sources").iter().enumerate() {
            if has(source, "serviceAccountToken") {
                let why = "must not be specified when serviceAccountName is not set";
                causes.forbidden(sources.item(number).field("serviceAccountToken"), why);
            }
        }
    }
}

fn sources(pod: Pod<'_>, volume: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let mut is_first = true;
    for kind in SOURCES.into_iter().filter(|kind| has(volume, kind)) {
        if std::mem::take(&mut is_first) {
            source(pod, volume, kind, at, causes);
        } else {
            // Names of these two in a real server's messages.
            let named = match kind {
                "cephfs" => "cephFS",
                "downwardAPI" => "downwarAPI",
                kind => kind,
            };
            causes.forbidden(at.field(named), "may not specify more than 1 volume type");
        }
        let iscsi = &volume["iscsi"];
        let name = text(volume, "name");
        if kind == "iscsi" && has(iscsi, "initiatorName") && name.len() + 1 + text(iscsi, "targetPortal").len() > 64 {
            let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                       iscsi.initiatorName is specified.";
            causes.invalid_text(at.field("name"), name, why);
        }
    }
    if is_first {
        causes.required(at, "must specify a volume type");
    }
}

fn source(pod: Pod<'_>, volume: &Value, kind: &str, above: At<'_>, causes: &mut Vec<Cause>) {
    let (given, at) = (&volume[kind], above.field(kind));
    match kind {
        "emptyDir" => {
            let limit = given["sizeLimit"].as_str().and_then(Quantity::parse);
            if limit.is_some_and(|limit| limit.signum() < 0) {
                causes.forbidden(at.field("sizeLimit"), "SizeLimit field must be a valid resource quantity");
            }
        }
        "hostPath" => host_path(given, at, causes),
        "gitRepo" => {
            causes.text_in(given, "repository", at);
            descending(text(given, "directory"), at.field("directory"), causes);
        }
        "secret" | "configMap" => files::check_map(given, kind, at, causes),
        "downwardAPI" => files::check_fields(given, at, causes),
        "projected" => files::check_projected(given, at, causes),
        "persistentVolumeClaim" => {
            causes.text_in(given, "claimName", at);
        }
        "csi" => driver(given, at, causes),
        "ephemeral" => ephemeral(pod, volume, above, causes),
        "image" => {
            if pod.alone.is_some() {
                causes.text_in(given, "reference", at);
            }
            check_pull_policy(given, "pullPolicy", at, causes);
        }
        _ => disks::check(given, kind, above, causes),
    }
}

fn host_path(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let path = causes.text_in(given, "path", at);
    if !path.is_empty() {
        no_backsteps(path, at.field("path"), causes);
        let known =
            ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
        causes.one_of(&given["type"], at.field("type"), &known);
    }
}

fn driver(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let name = causes.text_in(given, "driver", at);
    if name.len() > 63 {
        causes.too_long(at.field("driver"), 63);
    }
    causes.faults(at.field("driver"), name, subdomain(&name.to_lowercase()));
    if has(given, "nodePublishSecretRef") {
        let name = causes.text_in(&given["nodePublishSecretRef"], "name", at.field("nodePublishSecretRef"));
        if !name.is_empty() {
            causes.faults(at.field("name"), name, subdomain(name));
        }
    }
}

/// Checks the claim that an ephemeral volume makes for its pod.
fn ephemeral(pod: Pod<'_>, volume: &Value, above: At<'_>, causes: &mut Vec<Cause>) {
    let at = above.field("ephemeral");
    let template = &volume["ephemeral"]["volumeClaimTemplate"];
    let at = at.field("volumeClaimTemplate");
    if template.is_null() {
        causes.required(at, "");
    } else {
        claim::check_template(template, at, causes);
    }
    let name_of_pod = pod.alone.map_or("", |metadata| text(metadata, "name"));
    let name = text(volume, "name");
    if !name_of_pod.is_empty() && !name.is_empty() {
        let claim = format!("{name_of_pod}-{name}");
        for fault in subdomain(&claim) {
            causes.invalid_text(above.field("name"), name, &format!("PVC name {claim:?}: {fault}"));
        }
    }
}

/// Requires a name in the field `key` of a reference.
fn named(given: &Value, key: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    if has(given, key) {
        causes.text_in(&given[key], "name", at.field(key));
    }
}

/// Refuses keys with a domain that is reserved for Kubernetes.
fn reserved(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    for (key, _) in entries(given, "options") {
        let domain = format!(".{}", key.split('/').next().unwrap_or(key).to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            causes.invalid_text(at.field("options").key(key), key, why);
        }
    }
}
