//! `DefaultStorageClass`: the class of a claim that names none ("Storage Classes", the default one).

use std::cmp::Reverse;

use mock_objects::object;
use serde_json::Value;

use super::{all, set};
use crate::admission::Attempt;

/// Marks a class as the default; the second is the older name.
const DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// How a claim named its class before there was a field for it.
const NAMED_BY: &str = "volume.beta.kubernetes.io/storage-class";

/// Gives a claim without a class the default one; of several the newest.
pub(super) fn mutate(attempt: &Attempt<'_>, claim: &mut Value) -> bool {
    let annotated = claim["metadata"]["annotations"].get(NAMED_BY).is_some();
    if annotated || !claim["spec"]["storageClassName"].is_null() {
        return false;
    }
    let classes = all(attempt, "storageclasses.storage.k8s.io", None).into_iter().map(|version| version.value());
    let is_default = |class: &Value| DEFAULT.iter().any(|key| class["metadata"]["annotations"][key] == "true");
    // Times of the API sort as texts do.
    let newest_first = |class: &Value| {
        (Reverse(object::meta(class, "creationTimestamp").to_owned()), object::meta(class, "name").to_owned())
    };
    let found = classes.filter(is_default).min_by_key(newest_first);
    let (Some(class), Some(spec)) = (found, claim.get_mut("spec")) else { return false };
    set(spec, "storageClassName", object::meta(&class, "name"))
}
