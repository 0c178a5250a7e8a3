//! The checks of a volume: capacity, modes, and the one source that it must have.

use mock_cel::Quantity;
use mock_cel::formats::{label, subdomain};
use serde_json::{Map, Value};

use super::super::at::At;
use super::super::causes::Refuse;
use super::super::pod_spec::{claim, disks, host_path, node_selector};
use super::super::{Causes, texts};

/// `(source, name)`: the sources of volumes in the order of the checks. A real server's error about a second source has
/// the name instead of the source. Only the first source and `flexVolume` are checked.
const SOURCES: [(&str, &str); 22] = [
    ("hostPath", "hostPath"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("nfs", "nfs"),
    ("rbd", "rbd"),
    ("quobyte", "quobyte"),
    ("cephfs", "cephFS"),
    ("iscsi", "iscsi"),
    ("cinder", "cinder"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("scaleIO", "scaleIO"),
    ("local", "local"),
    ("storageos", "storageos"),
    ("csi", "csi"),
];

/// The fields of a source that refer to a Secret for a CSI driver.
const SECRETS: [&str; 4] =
    ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];

pub(super) fn volume(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], At::from("spec"));
    if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
        causes.required(at.field("accessModes"), "");
    }
    claim::check_modes(spec, at, causes);
    capacity(&spec["capacity"], at.field("capacity"), causes);
    let policy = &spec["persistentVolumeReclaimPolicy"];
    causes.one_of(policy, at.field("persistentVolumeReclaimPolicy"), &["Delete", "Recycle", "Retain"]);
    if spec["nodeAffinity"].is_object() {
        let (required, at) = (&spec["nodeAffinity"]["required"], at.field("nodeAffinity"));
        if required.is_null() {
            causes.required(at.field("required"), "must specify required node constraints");
        } else {
            node_selector(required, at.field("required"), causes);
        }
    }
    let mut is_first = true;
    for (kind, named) in SOURCES.into_iter().filter(|(kind, _)| spec[*kind].is_object()) {
        // A real server accepts `flexVolume` as a second source.
        if std::mem::take(&mut is_first) || kind == "flexVolume" {
            source(value, kind, at, causes);
        } else {
            causes.forbidden(at.field(named), "may not specify more than 1 volume type");
        }
    }
    if is_first {
        causes.required(at, "must specify a volume type");
    }
    let path = spec["hostPath"]["path"].as_str().unwrap_or_default();
    if policy == "Recycle" && path.starts_with('/') && path.split('/').all(|step| matches!(step, "" | "." | "..")) {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        causes.forbidden(at.field("persistentVolumeReclaimPolicy"), why);
    }
    let class = spec["storageClassName"].as_str().unwrap_or_default();
    if !class.is_empty() {
        causes.faults(at.field("storageClassName"), class, subdomain(class));
    }
    causes.one_of(&spec["volumeMode"], at.field("volumeMode"), &["Block", "Filesystem"]);
    if let Some(class) = spec["volumeAttributesClassName"].as_str() {
        let named = at.field("volumeAttributesClassName");
        if class.is_empty() {
            causes.required(named, "an empty string is disallowed");
        } else {
            causes.faults(named, class, subdomain(class));
        }
        if spec["csi"].is_null() {
            causes.required(at.field("csi"), "has to be specified when using volumeAttributesClassName");
        }
    }
}

fn capacity(capacity: &Value, at: At<'_>, causes: &mut Causes) {
    let amounts = capacity.as_object();
    if amounts.is_none_or(Map::is_empty) {
        causes.required(at, "");
    }
    if amounts.is_none_or(|amounts| amounts.len() > 1 || !amounts.contains_key("storage")) {
        let message = format!("Unsupported value: {capacity}: supported values: \"storage\"");
        causes.refuse("FieldValueNotSupported", at, message);
    }
    for (name, amount) in amounts.into_iter().flatten() {
        let sign = amount.as_str().and_then(Quantity::parse).map_or(1, Quantity::signum);
        if sign < 0 {
            causes.invalid(at.key(name), amount, "must be greater than or equal to 0");
        }
        if sign <= 0 {
            causes.invalid(at.key(name), amount, "must be greater than zero");
        }
    }
}

fn source(value: &Value, kind: &str, above: At<'_>, causes: &mut Causes) {
    let spec = &value["spec"];
    let (given, at) = (&spec[kind], above.field(kind));
    let text = |key: &str| given[key].as_str();
    match kind {
        "hostPath" => host_path(given, at, causes),
        "local" => {
            let path = causes.text_in(given, "path", at);
            texts::no_backsteps(path, at.field("path"), causes);
            if spec["nodeAffinity"].is_null() {
                causes.required(above.field("nodeAffinity"), "Local volume requires node affinity");
            }
        }
        "csi" => {
            let name = causes.text_in(given, "driver", at);
            if name.len() > 63 {
                causes.too_long(at.field("driver"), 63);
            }
            causes.faults(at.field("driver"), name, subdomain(&name.to_lowercase()));
            causes.text_in(given, "volumeHandle", at);
            for key in SECRETS.into_iter().filter(|key| given[*key].is_object()) {
                for (part, check) in [("name", subdomain as fn(&str) -> Vec<String>), ("namespace", label)] {
                    let name = causes.text_in(&given[key], part, at.field(key));
                    if !name.is_empty() {
                        causes.faults(at.field(key).field(part), name, check(name));
                    }
                }
            }
        }
        _ => disks::check(given, kind, above, causes),
    }
    match kind {
        "glusterfs" => {
            if let Some(namespace) = text("endpointsNamespace") {
                let why = "if the endpointnamespace is set, it must be a valid namespace name".to_owned();
                let faults = if namespace.is_empty() { vec![why] } else { label(namespace) };
                causes.faults(at.field("endpointsNamespace"), namespace, faults);
            }
        }
        "azureFile" if text("secretNamespace") == Some("") => causes.required(at.field("secretNamespace"), ""),
        "cinder" | "storageos" if given["secretRef"].is_object() => {
            causes.text_in(&given["secretRef"], "namespace", at.field("secretRef"));
        }
        "iscsi" if given["initiatorName"].is_string() => {
            let (name, portal) = (value["metadata"]["name"].as_str().unwrap_or_default(), text("targetPortal"));
            let portal = portal.unwrap_or_default();
            if name.len() + 1 + portal.len() > 64 {
                let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                           iscsi.initiatorName is specified.";
                causes.invalid_text(at.field("targetportal"), portal, why);
            }
        }
        _ => {}
    }
}

/// Refuses changes of the source, of the mode and of a set node affinity, and the removal of the attributes class.
pub(super) fn update(new: &Value, old: &Value, causes: &mut Causes) {
    let (after, before) = (&new["spec"], &old["spec"]);
    let kept = |of: &Value, kind: &str| {
        let mut source = of[kind].clone();
        // An update may add this Secret, which volume expansion uses.
        if before["csi"]["controllerExpandSecretRef"].is_null()
            && let Some(source) = source.as_object_mut()
        {
            source.remove("controllerExpandSecretRef");
        }
        source
    };
    if SOURCES.iter().any(|(kind, _)| kept(after, kind) != kept(before, kind)) {
        let why = "spec.persistentvolumesource is immutable after creation\n";
        causes.forbidden(At::from("spec.persistentvolumesource"), why);
    }
    if after["volumeMode"] != before["volumeMode"] {
        causes.invalid(At::from("volumeMode"), &after["volumeMode"], "field is immutable");
    }
    if !before["nodeAffinity"].is_null() && after["nodeAffinity"] != before["nodeAffinity"] {
        causes.invalid(At::from("nodeAffinity"), &after["nodeAffinity"], "field is immutable");
    }
    if !before["volumeAttributesClassName"].is_null() && after["volumeAttributesClassName"].is_null() {
        let why = "update from non-nil value to nil is forbidden";
        causes.forbidden(At::from("spec.volumeAttributesClassName"), why);
    }
}
