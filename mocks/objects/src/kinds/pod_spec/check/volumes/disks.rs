//! The checks of volumes whose storage system the pod names directly.

use mock_cel::formats::label;
use serde_json::Value;

use super::super::super::super::at::At;
use super::super::super::super::causes::{REPEATED_MAX, Refuse};
use super::super::{check_label, has, items, text};
use super::{named, reserved};
use crate::status::Cause;

/// The required fields of volume sources that have no or few other rules.
const REQUIRED: [(&str, &[&str]); 12] = [
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("cinder", &["volumeID"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
];

/// Checks a volume source of the type `kind`.
pub(super) fn check(given: &Value, kind: &str, above: At<'_>, causes: &mut Vec<Cause>) {
    // The name in a real server's messages.
    let at = above.field(if kind == "gcePersistentDisk" { "persistentDisk" } else { kind });
    for key in REQUIRED.iter().filter(|(of, _)| *of == kind).flat_map(|(_, keys)| *keys) {
        causes.text_in(given, key, at);
    }
    match kind {
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            let partition = given["partition"].as_i64().unwrap_or(0);
            if !(0..=255).contains(&partition) {
                causes.invalid(at.field("partition"), &partition, "must be between 1 and 255, inclusive");
            }
        }
        "nfs" => {
            let path = text(given, "path");
            if !path.starts_with('/') {
                causes.invalid_text(at.field("path"), path, "must be an absolute path");
            }
        }
        "iscsi" => iscsi(given, at, causes),
        "flocker" => flocker(given, at, causes),
        "rbd" | "cephfs" => {
            if items(given, "monitors").is_empty() {
                causes.required(at.field("monitors"), "");
            }
            if kind == "rbd" {
                causes.text_in(given, "image", at);
            }
        }
        "cinder" => named(given, "secretRef", at, causes),
        "quobyte" => quobyte(given, at, causes),
        "fc" => fibre(given, at, causes),
        "flexVolume" => reserved(given, at, causes),
        "azureDisk" => azure(given, at, causes),
        "storageos" => {
            let name = causes.text_in(given, "volumeName", at);
            if !name.is_empty() {
                causes.faults(at.field("volumeName"), name, label(name));
            }
            check_label(given, "volumeNamespace", at, causes);
            named(given, "secretRef", at, causes);
        }
        "scaleIO" => {
            for key in ["gateway", "system", "volumeName"] {
                causes.text_in(given, key, at);
            }
        }
        _ => {}
    }
}

fn iscsi(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    for (key, field) in [("iqn", "iqn"), ("initiatorName", "initiatorname")] {
        let name = text(given, key);
        if (key == "iqn" && name.is_empty()) || !has(given, key) {
            continue;
        }
        let why = match name.get(..3) {
            Some("iqn") if is_iqn(name) => continue,
            Some("eui") if is_plain(name, 16) => continue,
            Some("naa") if is_plain(name, 32) => continue,
            Some("iqn" | "eui" | "naa") => "must be valid format",
            _ => "must be valid format starting with iqn, eui, or naa",
        };
        causes.invalid_text(at.field(field), name, why);
    }
    causes.within(at.field("lun"), given["lun"].as_i64(), (0, 255));
    let secret = given["chapAuthDiscovery"] == Value::Bool(true) || given["chapAuthSession"] == Value::Bool(true);
    if secret && !has(given, "secretRef") {
        causes.required(at.field("secretRef"), "");
    }
}

/// Whether a text is an iSCSI name such as `iqn.2001-04.com.example:storage`, with an optional suffix.
fn is_iqn(text: &str) -> bool {
    let tail = |rest: &str| {
        let (domain, name) = rest.split_once(':').unwrap_or((rest, ""));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        let name_fits = |name: &str| {
            !name.is_empty() && !name.contains([',', ';', '*', '&', '$', '|']) && !name.contains(char::is_whitespace)
        };
        !domain.is_empty() && domain.bytes().all(plain) && name_fits(name)
    };
    let dated = |rest: &str| {
        let bytes = rest.as_bytes();
        let form = b"0000-00.";
        let fits = |(index, form): (usize, &u8)| {
            bytes.get(index).is_some_and(|byte| if *form == b'0' { byte.is_ascii_digit() } else { byte == form })
        };
        form.iter().enumerate().all(fits) && tail(&rest[form.len()..])
    };
    text.match_indices("iqn.").any(|(start, word)| dated(&text[start + word.len()..]))
}

/// Whether a text consists of three letters, one arbitrary character, and `length` letters or digits.
fn is_plain(text: &str, length: usize) -> bool {
    let mut rest = text.chars().skip(4);
    text.chars().count() == length + 4 && rest.all(|c| c.is_ascii_alphanumeric())
}

fn flocker(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let (name, uuid) = (text(given, "datasetName"), text(given, "datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        causes.required(at, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        causes.invalid_text(at, "resource", "datasetName and datasetUUID can not be specified simultaneously");
    }
    if name.contains('/') {
        causes.invalid_text(at.field("datasetName"), name, "must not contain '/'");
    }
}

fn quobyte(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let registry = text(given, "registry");
    let why = "must be a host:port pair or multiple pairs separated by commas";
    if registry.is_empty() {
        causes.required(at.field("registry"), why);
    } else if text(given, "tenant").len() >= 65 {
        causes.required(at.field("tenant"), "must be a UUID and may not exceed a length of 64 characters");
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)).take(REPEATED_MAX) {
            causes.invalid_text(at.field("registry"), registry, why);
        }
    }
    causes.text_in(given, "volume", at);
}

/// Whether a text is a host with a port; a host with several colons must be in brackets.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(inside) => inside.strip_suffix(']').filter(|inside| !inside.contains(['[', ']'])),
        None => Some(host).filter(|host| !host.contains([':', '[', ']'])),
    };
    host.is_some() && !port.contains(['[', ']'])
}

fn fibre(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let (targets, wide) = (items(given, "targetWWNs"), items(given, "wwids"));
    if targets.is_empty() && wide.is_empty() {
        causes.required(at.field("targetWWNs"), "must specify either targetWWNs or wwids, but not both");
    }
    if targets.is_empty() {
        return;
    }
    if !wide.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        causes.invalid(at.field("targetWWNs"), &given["targetWWNs"], why);
    }
    if has(given, "lun") {
        causes.within(at.field("lun"), given["lun"].as_i64(), (0, 255));
    } else {
        causes.required(at.field("lun"), "lun is required if targetWWNs is specified");
    }
}

fn azure(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    causes.one_of(&given["cachingMode"], at.field("cachingMode"), &["None", "ReadOnly", "ReadWrite"]);
    causes.one_of(&given["kind"], at.field("kind"), &["Dedicated", "Managed", "Shared"]);
    let (kind, uri) = (given["kind"].as_str(), text(given, "diskURI"));
    let (starts, form) = match kind {
        None => return,
        Some("Managed") => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        Some(_) => ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
    };
    if !uri.starts_with(starts) {
        causes.unsupported(at.field("diskURI"), uri, &[form]);
    }
}
