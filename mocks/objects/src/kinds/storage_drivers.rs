//! The kinds about drivers for storage and devices, such as `CSIDriver`, `CSINode`, `VolumeAttachment` and
//! `ResourceClaim`.

use mock_cel::formats::subdomain;
use serde_json::{Value, json};

use super::at::At;
use super::causes::{Refuse, required};
use super::{Causes, Generation, Kind};
use crate::fields::{each, set};

pub(super) const CSI_DRIVER: Kind = Kind {
    about: "What a driver of storage can do.",
    cells: |row| {
        let texts = |pointer: &str, key: &str| -> Vec<String> {
            let items = row.items(pointer);
            items
                .map(|item| if key.is_empty() { item } else { &item[key] }.as_str().unwrap_or_default().to_owned())
                .collect()
        };
        let modes = texts("/spec/volumeLifecycleModes", "").join(",");
        let audiences = row.at("/spec/tokenRequests").map(|_| texts("/spec/tokenRequests", "audience").join(","));
        vec![
            row.name(),
            row.flag("/spec/attachRequired"),
            row.flag("/spec/podInfoOnMount"),
            row.flag("/spec/storageCapacity"),
            audiences.unwrap_or_else(|| "<unset>".to_owned()).into(),
            row.flag("/spec/requiresRepublish"),
            if modes.is_empty() { "<none>".into() } else { modes.into() },
            row.age(),
        ]
    },
    defaults: |value| {
        for (key, default) in [
            ("attachRequired", json!(true)),
            ("podInfoOnMount", json!(false)),
            ("storageCapacity", json!(false)),
            ("fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
            ("volumeLifecycleModes", json!(["Persistent"])),
            ("requiresRepublish", json!(false)),
            ("seLinuxMount", json!(false)),
        ] {
            set(value, &["spec"], key, default);
        }
    },
    check: |value, causes| {
        let known = ["File", "None", "ReadWriteOnceWithFSType"];
        causes.one_of(&value["spec"]["fsGroupPolicy"], At::from("spec.fsGroupPolicy"), &known);
        let (at, known) = (At::from("spec.volumeLifecycleModes"), ["Ephemeral", "Persistent"]);
        let modes = value["spec"]["volumeLifecycleModes"].as_array().into_iter().flatten();
        // The real server names the list, not the item.
        modes.for_each(|mode| causes.one_of(mode, at, &known));
    },
    disabled: &[("/spec", "nodeAllocatableUpdatePeriodSeconds")],
    // It counts from nothing.
    generation: Generation::Updates,
    needs_revision: true,
    shown_when_deleted: true,
    ..Kind::of("csidrivers.storage.k8s.io")
};

pub(super) const CSI_NODE: Kind = Kind {
    about: "The drivers of storage on a node.",
    cells: |row| vec![row.name(), row.items("/spec/drivers").len().into(), row.age()],
    check: |value, causes| {
        let at = At::from("spec.drivers");
        for (index, driver) in value["spec"]["drivers"].as_array().into_iter().flatten().enumerate() {
            for key in ["name", "nodeID"] {
                causes.text_in(driver, key, at.item(index));
            }
        }
    },
    generation: Generation::None,
    needs_revision: true,
    shown_when_deleted: true,
    ..Kind::of("csinodes.storage.k8s.io")
};

pub(super) const CSI_STORAGE_CAPACITY: Kind = Kind {
    about: "How much storage of a class there is for some nodes.",
    check: |value, causes| {
        required(value, "/storageClassName", causes);
        name_in(value, "/storageClassName", "storageClassName", causes);
    },
    fixed: &["/storageClassName", "/nodeTopology"],
    generation: Generation::None,
    needs_revision: true,
    ..Kind::of("csistoragecapacities.storage.k8s.io")
};

pub(super) const VOLUME_ATTACHMENT: Kind = Kind {
    about: "A volume that a node needs.",
    cells: |row| {
        vec![
            row.name(),
            row.text("/spec/attacher").into(),
            row.text("/spec/source/persistentVolumeName").into(),
            row.text("/spec/nodeName").into(),
            row.flag("/status/attached"),
            row.age(),
        ]
    },
    check: |value, causes| {
        required(value, "/spec/attacher", causes);
        let source = &value["spec"]["source"];
        let (named, inline) = (source["persistentVolumeName"].is_string(), source["inlineVolumeSpec"].is_object());
        if named == inline {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            causes.required(At::from("spec.source"), why);
        }
        required(value, "/spec/nodeName", causes);
        name_in(value, "/spec/nodeName", "spec.nodeName", causes);
    },
    fixed: &["/spec"],
    generation: Generation::None,
    needs_revision: true,
    shown_when_deleted: true,
    ..Kind::of("volumeattachments.storage.k8s.io")
};

pub(super) const VOLUME_ATTRIBUTES_CLASS: Kind = Kind {
    about: "What of a volume can be changed later.",
    cells: |row| vec![row.name(), row.text("/driverName").into(), row.age()],
    check: |value, causes| {
        required(value, "/driverName", causes);
        if value["parameters"].as_object().is_none_or(serde_json::Map::is_empty) {
            causes.required(At::from("parameters"), "must contain at least one key/value pair");
        }
    },
    forbidden: &[
        ("/driverName", "updates to driverName are forbidden."),
        ("/parameters", "updates to parameters are forbidden."),
    ],
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::of("volumeattributesclasses.storage.k8s.io")
};

pub(super) const DEVICE_CLASS: Kind = Kind {
    about: "Devices that claims can ask for by name.",
    disabled: &[("/spec", "extendedResourceName")],
    check: |value, causes| {
        let at = At::from("spec.selectors");
        for (index, selector) in value["spec"]["selectors"].as_array().into_iter().flatten().enumerate() {
            if selector["cel"].is_null() {
                causes.required(at.item(index).field("cel"), "");
            }
        }
    },
    shown_when_deleted: true,
    cells: |row| vec![row.name(), row.age()],
    ..Kind::of("deviceclasses.resource.k8s.io")
};

pub(super) const RESOURCE_CLAIM: Kind = Kind {
    about: "Devices that pods need.",
    cells: |row| {
        let mut states = Vec::new();
        if row.is_deleting() {
            states.push("deleted");
        }
        match row.at("/status/allocation") {
            None if !row.is_deleting() => states.push("pending"),
            None => {}
            Some(_) => states.push("allocated"),
        }
        if row.at("/status/allocation").is_some() && row.items("/status/reservedFor").len() > 0 {
            states.push("reserved");
        }
        vec![row.name(), states.join(",").into(), row.age()]
    },
    defaults: |value| fill_requests(value, "/spec/devices"),
    fixed: &["/spec"],
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::of("resourceclaims.resource.k8s.io")
};

pub(super) const RESOURCE_CLAIM_TEMPLATE: Kind = Kind {
    about: "The claims that are made for pods.",
    cells: |row| vec![row.name(), row.age()],
    defaults: |value| fill_requests(value, "/spec/spec/devices"),
    fixed: &["/spec"],
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::of("resourceclaimtemplates.resource.k8s.io")
};

pub(super) const RESOURCE_SLICE: Kind = Kind {
    about: "Devices that a driver has on some nodes.",
    cells: |row| {
        let text = |pointer: &str| row.text(pointer).into();
        vec![row.name(), text("/spec/nodeName"), text("/spec/driver"), text("/spec/pool/name"), row.age()]
    },
    check: |value, causes| {
        required(value, "/spec/pool/name", causes);
        required(value, "/spec/driver", causes);
        name_in(value, "/spec/nodeName", "spec.nodeName", causes);
        let spec = &value["spec"];
        let said = |key: &str| match &spec[key] {
            Value::Bool(flag) => *flag,
            Value::String(text) => !text.is_empty(),
            other => other.is_object(),
        };
        let ways = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"].into_iter();
        let why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
        match ways.filter(|way| said(way)).count() {
            0 => causes.required(At::from("spec"), why),
            1 => {}
            _ => causes.invalid(At::from("spec"), spec, why),
        }
    },
    fixed: &["/spec/driver", "/spec/pool/name", "/spec/nodeName"],
    shown_when_deleted: true,
    ..Kind::of("resourceslices.resource.k8s.io")
};

/// Checks that a text, if present, is a valid name of an object.
fn name_in(value: &Value, pointer: &str, field: &str, causes: &mut Causes) {
    if let Some(name) = value.pointer(pointer).and_then(Value::as_str).filter(|name| !name.is_empty()) {
        causes.faults(At::from(field), name, subdomain(name));
    }
}

/// Fills in the default number of devices in each request.
fn fill_requests(value: &mut Value, pointer: &str) {
    let fill = |request: &mut Value| {
        set(request, &[], "allocationMode", json!("ExactCount"));
        if request["allocationMode"] == "ExactCount" {
            set(request, &[], "count", json!(1));
        }
    };
    let Some(devices) = value.pointer_mut(pointer) else { return };
    each(devices, "requests", |request| {
        if let Some(exactly) = request.get_mut("exactly").filter(|exactly| exactly.is_object()) {
            fill(exactly);
        }
        each(request, "firstAvailable", fill);
    });
}
