//! The plugin `DefaultStorageClass`: sets the storage class of a volume claim that names no class ("Storage Classes",
//! default class).

use std::cmp::Reverse;

use mock_objects::object;
use serde_json::Value;

use super::{all, set};
use crate::admission::Attempt;

/// Annotations that mark a storage class as the default; the second annotation is the older one.
const DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// The annotation with the storage class of a claim, used before the field `spec.storageClassName` existed.
const NAMED_BY: &str = "volume.beta.kubernetes.io/storage-class";

/// Sets the default storage class in a claim without a class. If several classes are marked as default, the newest is
/// used.
pub(super) fn mutate(attempt: &Attempt<'_>, claim: &mut Value) -> bool {
    let annotated = claim["metadata"]["annotations"].get(NAMED_BY).is_some();
    if annotated || !claim["spec"]["storageClassName"].is_null() {
        return false;
    }
    let classes = all(attempt, "storageclasses.storage.k8s.io", None).into_iter().map(|version| version.value());
    let is_default = |class: &Value| DEFAULT.iter().any(|key| class["metadata"]["annotations"][key] == "true");
    // Timestamps of the API sort as strings.
    let newest_first = |class: &Value| {
        (Reverse(object::meta(class, "creationTimestamp").to_owned()), object::meta(class, "name").to_owned())
    };
    let found = classes.filter(is_default).min_by_key(newest_first);
    let (Some(class), Some(spec)) = (found, claim.get_mut("spec")) else { return false };
    set(spec, "storageClassName", object::meta(&class, "name"))
}
