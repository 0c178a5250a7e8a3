//! The kinds about drivers for storage and devices, such as `CSIDriver`, `CSINode`, `VolumeAttachment` and
//! `ResourceClaim`.

mod devices;

use mock_cel::formats::{qualified_name, subdomain};
use serde_json::{Value, json};

use super::at::At;
use super::causes::{Refuse, required};
use super::pod_spec::node_selector;
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
        let drivers = value["spec"]["drivers"].as_array().map_or(&[][..], Vec::as_slice);
        for (index, driver) in drivers.iter().enumerate() {
            let at = at.item(index);
            driver_name(driver["name"].as_str().unwrap_or_default(), true, at.field("name"), causes);
            if causes.text_in(driver, "nodeID", at).len() > NODE_ID_MAX_BYTES {
                let why = format!("must be {NODE_ID_MAX_BYTES} characters or less");
                causes.invalid(at.field("nodeID"), &driver["nodeID"], &why);
            }
            if drivers[..index].iter().any(|other| other["name"] == driver["name"]) {
                causes.duplicate(at.field("name"), driver["name"].as_str().unwrap_or_default());
            }
            causes.not_negative(at.field("allocatable").field("count"), driver["allocatable"]["count"].as_i64());
            let keys: Vec<&Value> = driver["topologyKeys"].as_array().into_iter().flatten().collect();
            for (number, key) in keys.iter().enumerate() {
                let text = key.as_str().unwrap_or_default();
                if text.is_empty() {
                    causes.required(at, "");
                }
                if keys[..number].contains(key) {
                    causes.duplicate(at, text);
                }
                causes.faults(at, text, qualified_name(text));
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
        // The attacher of a new attachment is a driver's name.
        let attacher = value["spec"]["attacher"].as_str().unwrap_or_default();
        driver_name(attacher, true, At::from("spec.attacher"), causes);
        let source = &value["spec"]["source"];
        let (named, inline) = (source["persistentVolumeName"].is_string(), source["inlineVolumeSpec"].is_object());
        if named == inline {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            causes.required(At::from("spec.source"), why);
        }
        let volume = "/spec/source/persistentVolumeName";
        name_in(value, volume, "spec.source.persistentVolumeName", causes);
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
        devices::check_selectors(&value["spec"], At::from("spec"), causes);
        devices::check_config(&value["spec"], At::from("spec"), None, causes);
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
    check: |value, causes| devices::check_claim(&value["spec"]["devices"], At::from("spec.devices"), causes),
    fixed: &["/spec"],
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::of("resourceclaims.resource.k8s.io")
};

pub(super) const RESOURCE_CLAIM_TEMPLATE: Kind = Kind {
    about: "The claims that are made for pods.",
    cells: |row| vec![row.name(), row.age()],
    defaults: |value| fill_requests(value, "/spec/spec/devices"),
    check: |value, causes| {
        devices::check_claim(&value["spec"]["spec"]["devices"], At::from("spec.spec.devices"), causes);
    },
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
    defaults: |value| {
        let Some(spec) = value.get_mut("spec") else { return };
        each(spec, "devices", |device| {
            if let Some(fields) = device.as_object_mut() {
                fields.retain(|key, _| !OFF_IN_DEVICES.contains(&key.as_str()));
            }
        });
    },
    disabled: &[("/spec", "sharedCounters"), ("/spec", "perDeviceNodeSelection")],
    check: |value, causes| {
        let (spec, at) = (&value["spec"], At::from("spec"));
        driver_name(spec["driver"].as_str().unwrap_or_default(), true, at.field("driver"), causes);
        let (pool, at_pool) = (&spec["pool"], at.field("pool"));
        let name = causes.text_in(pool, "name", at_pool);
        for part in name.split('/').filter(|_| !name.is_empty()) {
            causes.faults(at_pool.field("name"), part, subdomain(part));
        }
        let count = pool["resourceSliceCount"].as_i64().unwrap_or(0);
        if count <= 0 {
            causes.invalid(at_pool.field("resourceSliceCount"), &count, "must be greater than zero");
        }
        if let Some(generation) = pool["generation"].as_i64().filter(|generation| *generation < 0) {
            causes.invalid(at_pool.field("generation"), &generation, "must be greater than or equal to zero");
        }
        name_in(value, "/spec/nodeName", "spec.nodeName", causes);
        if spec["nodeName"] == "" {
            causes.invalid_text(at.field("nodeName"), "", "must be either unset or set to a non-empty string");
        }
        if spec["nodeSelector"].is_object() {
            let at = at.field("nodeSelector");
            node_selector(&spec["nodeSelector"], at, causes);
            let terms = &spec["nodeSelector"]["nodeSelectorTerms"];
            if terms.as_array().is_none_or(|terms| terms.len() != 1) {
                causes.invalid(at.field("nodeSelectorTerms"), terms, "must have exactly one node selector term");
            }
        }
        if spec["allNodes"] == false {
            causes.invalid(at.field("allNodes"), "false", "must be either unset or set to true");
        }
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

/// Longest `nodeID` of a driver.
const NODE_ID_MAX_BYTES: usize = 192;
/// Longest name of a driver.
const DRIVER_MAX_BYTES: usize = 63;

/// Checks the name of a driver. The names of storage drivers may have upper-case letters.
fn driver_name(name: &str, is_of_storage: bool, at: At<'_>, causes: &mut Causes) {
    if name.is_empty() {
        causes.required(at, "");
    }
    if name.len() > DRIVER_MAX_BYTES {
        causes.too_long(at, DRIVER_MAX_BYTES);
    }
    let faults = if is_of_storage { subdomain(&name.to_lowercase()) } else { subdomain(name) };
    causes.faults(at, name, faults);
}

/// Fields of devices whose features are off by default.
const OFF_IN_DEVICES: [&str; 9] = [
    "taints",
    "consumesCounters",
    "nodeName",
    "nodeSelector",
    "allNodes",
    "bindingConditions",
    "bindingFailureConditions",
    "bindsToNode",
    "allowMultipleAllocations",
];

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
