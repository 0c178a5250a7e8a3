//! `CSIDriver`: what a storage driver can do and wants to know.

use serde_json::{Value, json};

use super::print::{AGE, NAME, Printer, UNSET};
use super::{Generation, Kind};
use crate::fields::set;

pub(super) const CSI_DRIVER: Kind = Kind {
    about: "What a storage driver can do and wants to know.",
    messages: &[
        ("CSIDriver", "1:metadata:ObjectMeta 2:spec:CSIDriverSpec"),
        (
            "CSIDriverSpec",
            "1:attachRequired:b? 2:podInfoOnMount:b? 3:volumeLifecycleModes:[s] 4:storageCapacity:b? \
             5:fsGroupPolicy:s? 6:tokenRequests:[CsiTokenRequest] 7:requiresRepublish:b? 8:seLinuxMount:b? \
             9:nodeAllocatableUpdatePeriodSeconds:i?",
        ),
        ("CsiTokenRequest", "1:audience:s! 2:expirationSeconds:i?"),
    ],
    printer: PRINTER,
    defaults,
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::cluster("storage.k8s.io", &["v1"], "csidrivers", "CSIDriver")
};

fn defaults(value: &mut Value) {
    for (key, default) in [
        ("attachRequired", json!(true)),
        ("fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
        ("podInfoOnMount", json!(false)),
        ("requiresRepublish", json!(false)),
        ("seLinuxMount", json!(false)),
        ("storageCapacity", json!(false)),
        ("volumeLifecycleModes", json!(["Persistent"])),
    ] {
        set(value, &["spec"], key, default);
    }
}

const PRINTER: Printer = Printer {
    columns: &[
        NAME,
        ("AttachRequired", "boolean", 0),
        ("PodInfoOnMount", "boolean", 0),
        ("StorageCapacity", "boolean", 0),
        ("TokenRequests", "string", 0),
        ("RequiresRepublish", "boolean", 0),
        ("Modes", "string", 0),
        AGE,
    ],
    cells: |row| {
        let list = |pointer: &str, key: Option<&str>| {
            let texts = row.items(pointer).filter_map(|item| key.map_or(item, |key| &item[key]).as_str());
            texts.collect::<Vec<_>>().join(",")
        };
        let or_unset = |text: String| if text.is_empty() { UNSET.into() } else { Value::from(text) };
        vec![
            row.name(),
            row.at("/spec/attachRequired").cloned().unwrap_or(Value::Bool(true)),
            row.flag("/spec/podInfoOnMount"),
            row.flag("/spec/storageCapacity"),
            or_unset(list("/spec/tokenRequests", Some("audience"))),
            row.flag("/spec/requiresRepublish"),
            or_unset(list("/spec/volumeLifecycleModes", None)),
            row.age(),
        ]
    },
};
