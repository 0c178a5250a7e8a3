//! `VolumeAttachment`: a volume on its way to a node.

use serde_json::json;

use super::print::{AGE, NAME, Printer};
use super::{Generation, Kind};
use crate::fields::set;

pub(super) const VOLUME_ATTACHMENT: Kind = Kind {
    status: true,
    messages: &[
        ("VolumeAttachment", "1:metadata:ObjectMeta 2:spec:VolumeAttachmentSpec 3:status:VolumeAttachmentStatus"),
        ("VolumeAttachmentSpec", "1:attacher:s! 2:source:VolumeAttachmentSource 3:nodeName:s!"),
        ("VolumeAttachmentSource", "1:persistentVolumeName:s? 2:inlineVolumeSpec:PersistentVolumeSpec"),
        (
            "VolumeAttachmentStatus",
            "1:attached:b! 2:attachmentMetadata:{s} 3:attachError:VolumeError 4:detachError:VolumeError",
        ),
        ("VolumeError", "1:time:T 2:message:s"),
    ],
    printer: PRINTER,
    new: |value| set(value, &["status"], "attached", json!(false)),
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::cluster("storage.k8s.io", &["v1"], "volumeattachments", "VolumeAttachment")
};

const PRINTER: Printer = Printer {
    columns: &[
        NAME,
        ("Attacher", "string", 0),
        ("PV", "string", 0),
        ("Node", "string", 0),
        ("Attached", "boolean", 0),
        AGE,
    ],
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
};
