//! `CustomResourceDefinition`: adds a kind to the API. The module `catalogue::custom` reads the specification.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Kind, Meaning};
use crate::fields::{self, set};

pub(super) const CUSTOM_RESOURCE_DEFINITION: Kind = Kind {
    defaults_at: establish,
    follow_status: remember_stored,
    fixed: &["/spec/scope"],
    meaning: Meaning::Definition,
    ..Kind::of("customresourcedefinitions.apiextensions.k8s.io")
};

/// Sets the condition `Established` of a definition at once; a real server waits for other components.
fn establish(crd: &mut Value, now: Timestamp) {
    let names = &crd["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    set(crd, &["spec", "names"], "singular", json!(kind.to_lowercase()));
    set(crd, &["spec", "names"], "listKind", json!(format!("{kind}List")));
    set(crd, &["spec"], "conversion", json!({"strategy": "None"}));
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": message,
               "lastTransitionTime": fields::seconds(now)})
    };
    let established = crd["status"]["conditions"].clone();
    let conditions = if established.is_array() {
        established
    } else {
        json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ])
    };
    let stored = crd["status"]["storedVersions"].clone();
    crd["status"] = json!({"acceptedNames": crd["spec"]["names"], "conditions": conditions, "storedVersions": stored});
    remember_stored(crd);
}

/// Adds the storage version to `status.storedVersions`, the versions in which objects may be stored.
fn remember_stored(crd: &mut Value) {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let marked = versions.filter(|version| version["storage"] == Value::Bool(true));
    let marked: Vec<Value> = marked.map(|version| version["name"].clone()).collect();
    let mut stored = crd["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    for version in marked {
        if !stored.contains(&version) {
            stored.push(version);
        }
    }
    crd["status"]["storedVersions"] = Value::Array(stored);
}
