//! `PersistentVolumeClaimResize`: the check that a claim may grow ("Expanding Persistent Volumes Claims").

use mock_cel::Quantity;
use mock_objects::status::Failure;
use serde_json::{Value, json};

use super::forbidden;
use crate::admission::Attempt;

const CLASSES: &str = "storageclasses.storage.k8s.io";

/// Refuses a larger claim if its class does not allow expansion.
pub(super) fn validate(attempt: &Attempt<'_>, claim: &Value) -> Result<(), Failure> {
    let Some(old) = attempt.old else { return Ok(()) };
    let size = |claim: &Value| {
        let asked = claim.pointer("/spec/resources/requests/storage").and_then(Value::as_str);
        asked.and_then(Quantity::parse).unwrap_or(Quantity::whole(0))
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        return Err(forbidden(attempt, claim, "Only bound persistent volume claims can be expanded"));
    }
    if grows(attempt, claim, old) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(forbidden(attempt, claim, why))
}

fn grows(attempt: &Attempt<'_>, claim: &Value, old: &Value) -> bool {
    let (name, before) = (class(claim), class(old));
    if name.is_empty() || name != before {
        return false;
    }
    let cluster = attempt.call.cluster();
    let catalogue = cluster.catalogue();
    let found = catalogue.by_full_name(CLASSES).and_then(|resource| cluster.get(resource, "", name));
    found.is_some_and(|class| class.value()["allowVolumeExpansion"] == json!(true))
}

/// The class of a claim; the annotation is the older way.
fn class(claim: &Value) -> &str {
    let annotation = &claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    annotation.as_str().or(claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}
