//! `PersistentVolume`: storage that outlives pods. New volumes get no protection finalizer, because no controller here
//! would remove it.

use serde_json::{Map, Value, json};

use super::causes::unsupported;
use super::print::{Printer, Row, UNSET};
use super::{Causes, Generation, Kind, pod_spec};
use crate::fields::set;
use crate::status::Cause;

pub(super) const PERSISTENT_VOLUME: Kind = Kind {
    short_names: &["pv"],
    about: "A piece of storage that outlives pods.",
    status: true,
    messages: &[
        "PersistentVolume 1:metadata:ObjectMeta 2:spec:PersistentVolumeSpec 3:status:PersistentVolumeStatus",
        "PersistentVolumeSpec 1:capacity:{Q} 2:<inline>:PersistentVolumeSource 3:accessModes:[s] \
         4:claimRef:ObjectReference 5:persistentVolumeReclaimPolicy:s 6:storageClassName:s 7:mountOptions:[s] \
         8:volumeMode:s? 9:nodeAffinity:VolumeNodeAffinity 10:volumeAttributesClassName:s?",
        "PersistentVolumeSource 1:gcePersistentDisk:GCEPersistentDiskVolumeSource \
         2:awsElasticBlockStore:AWSElasticBlockStoreVolumeSource 3:hostPath:HostPathVolumeSource \
         4:glusterfs:GlusterfsPersistentVolumeSource 5:nfs:NFSVolumeSource 6:rbd:RBDPersistentVolumeSource \
         7:iscsi:ISCSIPersistentVolumeSource 8:cinder:CinderPersistentVolumeSource \
         9:cephfs:CephFSPersistentVolumeSource 10:fc:FCVolumeSource 11:flocker:FlockerVolumeSource \
         12:flexVolume:FlexPersistentVolumeSource 13:azureFile:AzureFilePersistentVolumeSource \
         14:vsphereVolume:VsphereVirtualDiskVolumeSource 15:quobyte:QuobyteVolumeSource \
         16:azureDisk:AzureDiskVolumeSource 17:photonPersistentDisk:PhotonPersistentDiskVolumeSource \
         18:portworxVolume:PortworxVolumeSource 19:scaleIO:ScaleIOPersistentVolumeSource 20:local:LocalVolumeSource \
         21:storageos:StorageOSPersistentVolumeSource 22:csi:CSIPersistentVolumeSource",
        "GlusterfsPersistentVolumeSource 1:endpoints:s! 2:path:s! 3:readOnly:b 4:endpointsNamespace:s?",
        "RBDPersistentVolumeSource 1:monitors:[s]! 2:image:s! 3:fsType:s 4:pool:s 5:user:s 6:keyring:s \
         7:secretRef:SecretReference 8:readOnly:b",
        "ISCSIPersistentVolumeSource 1:targetPortal:s! 2:iqn:s! 3:lun:i! 4:iscsiInterface:s 5:fsType:s 6:readOnly:b \
         7:portals:[s] 8:chapAuthDiscovery:b 10:secretRef:SecretReference 11:chapAuthSession:b 12:initiatorName:s?",
        "CinderPersistentVolumeSource 1:volumeID:s! 2:fsType:s 3:readOnly:b 4:secretRef:SecretReference",
        "CephFSPersistentVolumeSource 1:monitors:[s]! 2:path:s 3:user:s 4:secretFile:s 5:secretRef:SecretReference \
         6:readOnly:b",
        "FlexPersistentVolumeSource 1:driver:s! 2:fsType:s 3:secretRef:SecretReference 4:readOnly:b 5:options:{s}",
        "AzureFilePersistentVolumeSource 1:secretName:s! 2:shareName:s! 3:readOnly:b 4:secretNamespace:s?",
        "ScaleIOPersistentVolumeSource 1:gateway:s! 2:system:s! 3:secretRef:SecretReference 4:sslEnabled:b \
         5:protectionDomain:s 6:storagePool:s 7:storageMode:s 8:volumeName:s 9:fsType:s 10:readOnly:b",
        "LocalVolumeSource 1:path:s! 2:fsType:s?",
        "StorageOSPersistentVolumeSource 1:volumeName:s 2:volumeNamespace:s 3:fsType:s 4:readOnly:b \
         5:secretRef:ObjectReference",
        "CSIPersistentVolumeSource 1:driver:s! 2:volumeHandle:s! 3:readOnly:b 4:fsType:s 5:volumeAttributes:{s} \
         6:controllerPublishSecretRef:SecretReference 7:nodeStageSecretRef:SecretReference \
         8:nodePublishSecretRef:SecretReference 9:controllerExpandSecretRef:SecretReference",
        "VolumeNodeAffinity 1:required:NodeSelector",
        "PersistentVolumeStatus 1:phase:s 2:message:s 3:reason:s 4:lastPhaseTransitionTime:T",
    ],
    printer: PRINTER,
    defaults,
    new: |value| set(value, &["status"], "phase", json!("Pending")),
    check,
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::cluster("", &["v1"], "persistentvolumes", "PersistentVolume")
};

fn defaults(value: &mut Value) {
    set(value, &["spec"], "persistentVolumeReclaimPolicy", json!("Retain"));
    set(value, &["spec"], "volumeMode", json!("Filesystem"));
    if let Some(spec) = value.get_mut("spec") {
        pod_spec::fill_source(spec);
    }
}

fn check(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required("spec.accessModes", ""));
    }
    check_access_modes(spec, causes);
    let capacity = spec["capacity"].as_object();
    if capacity.is_none_or(Map::is_empty) {
        causes.push(Cause::required("spec.capacity", ""));
    }
    if capacity.is_none_or(|capacity| capacity.len() > 1 || !capacity.contains_key("storage")) {
        let shown = spec["capacity"].to_string();
        let message = format!("Unsupported value: {shown}: supported values: \"storage\"");
        causes.push(Cause { reason: "FieldValueNotSupported", field: "spec.capacity".to_owned(), message });
    }
    let plain = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    if !spec.as_object().into_iter().flatten().any(|(key, _)| !plain.contains(&key.as_str())) {
        causes.push(Cause::required("spec", "must specify a volume type"));
    }
}

fn check_access_modes(spec: &Value, causes: &mut Causes) {
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in spec["accessModes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !known.contains(&mode) {
            let allowed = known.map(|mode| format!("\"{mode}\"")).join(", ");
            causes.push(unsupported("spec.accessModes", mode, &allowed));
        }
    }
}

const PRINTER: Printer = Printer {
    columns: "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, \
         Age, VolumeMode+",
    cells: |row| {
        let claim = match row.text("/spec/claimRef/name") {
            "" => String::new(),
            name => format!("{}/{name}", row.text("/spec/claimRef/namespace")),
        };
        vec![
            row.name(),
            row.text("/spec/capacity/storage").into(),
            access(row, "/spec/accessModes").into(),
            row.text("/spec/persistentVolumeReclaimPolicy").into(),
            phase(row),
            claim.into(),
            class(row),
            row.text_or("/spec/volumeAttributesClassName", UNSET),
            row.text("/status/reason").into(),
            row.age(),
            row.text_or("/spec/volumeMode", UNSET),
        ]
    },
};

/// The annotation with the storage class of a claim or volume, used before `storageClassName` existed.
const OLD_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

pub(super) fn phase(row: &Row<'_>) -> Value {
    if row.is_deleting() { "Terminating" } else { row.text("/status/phase") }.into()
}

pub(super) fn class(row: &Row<'_>) -> Value {
    match row.text(OLD_CLASS) {
        "" => row.text("/spec/storageClassName").into(),
        old => old.into(),
    }
}

/// The access modes of a volume or claim in their short form and in a fixed order.
pub(super) fn access(row: &Row<'_>, pointer: &str) -> String {
    let has = |mode: &str| row.items(pointer).any(|one| one == mode);
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    short.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}
