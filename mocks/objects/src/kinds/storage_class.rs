//! `StorageClass`: how new volumes are made.

use serde_json::{Value, json};

use super::causes::required;
use super::print::Printer;
use super::{Generation, Kind};
use crate::fields::set;

pub(super) const STORAGE_CLASS: Kind = Kind {
    short_names: &["sc"],
    about: "How volumes of a kind are made.",
    messages: &[
        "StorageClass 1:metadata:ObjectMeta 2:provisioner:s! 3:parameters:{s} 4:reclaimPolicy:s? 5:mountOptions:[s] \
         6:allowVolumeExpansion:b? 7:volumeBindingMode:s? 8:allowedTopologies:[TopologySelectorTerm]",
        "TopologySelectorTerm 1:matchLabelExpressions:[TopologySelectorLabelRequirement]",
        "TopologySelectorLabelRequirement 1:key:s! 2:values:[s]!",
    ],
    printer: PRINTER,
    defaults,
    check: |value, causes| required(value, "/provisioner", causes),
    fixed: &["/provisioner"],
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::cluster("storage.k8s.io", &["v1"], "storageclasses", "StorageClass")
};

fn defaults(value: &mut Value) {
    set(value, &[], "reclaimPolicy", json!("Delete"));
    set(value, &[], "volumeBindingMode", json!("Immediate"));
}

const PRINTER: Printer = Printer {
    columns: "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
    cells: |row| {
        let default = row.text("/metadata/annotations/storageclass.kubernetes.io~1is-default-class") == "true";
        let name = row.text("/metadata/name");
        vec![
            if default { format!("{name} (default)").into() } else { name.into() },
            row.text("/provisioner").into(),
            row.text_or("/reclaimPolicy", "Delete"),
            row.text_or("/volumeBindingMode", "Immediate"),
            row.flag("/allowVolumeExpansion"),
            row.age(),
        ]
    },
};
