//! `StorageClass`: describes how new volumes are made.

use serde_json::{Value, json};

use super::at::At;
use super::causes::{Refuse, required};
use super::print::Cells;
use super::{Generation, Kind};
use crate::fields::set;

pub(super) const STORAGE_CLASS: Kind = Kind {
    about: "How volumes of a kind are made.",
    cells: CELLS,
    defaults,
    check: |value, causes| {
        required(value, "/provisioner", causes);
        causes.one_of(&value["reclaimPolicy"], At::from("reclaimPolicy"), &["Delete", "Retain"]);
        let known = ["Immediate", "WaitForFirstConsumer"];
        causes.one_of(&value["volumeBindingMode"], At::from("volumeBindingMode"), &known);
    },
    forbidden: &[
        ("/parameters", "updates to parameters are forbidden."),
        ("/provisioner", "updates to provisioner are forbidden."),
        ("/reclaimPolicy", "updates to reclaimPolicy are forbidden."),
    ],
    fixed: &["/volumeBindingMode"],
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::of("storageclasses.storage.k8s.io")
};

fn defaults(value: &mut Value) {
    set(value, &[], "reclaimPolicy", json!("Delete"));
    set(value, &[], "volumeBindingMode", json!("Immediate"));
}

const CELLS: Cells = |row| {
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
};
