//! `Namespace`: a scope for names.

use serde_json::{Value, json};

use super::{Causes, Ending, Generation, Kind, Meaning, Names};
use crate::fields::{self, set};
use crate::status::Cause;

pub(super) const NAMESPACE: Kind = Kind {
    about: "A room for names: most objects live in one and go with it.",
    cells: |row| vec![row.name(), row.text("/status/phase").into(), row.age()],
    defaults: name_label,
    new: |value| set(value, &["status"], "phase", json!("Active")),
    named,
    names: Names::Label,
    check,
    generation: Generation::None,
    // Those that the plugin `NamespaceLifecycle` protects.
    immortal: &["default", "kube-system", "kube-public"],
    ending: Ending::Emptied,
    meaning: Meaning::Namespace,
    ..Kind::of("namespaces")
};

/// Sets the finalizer that keeps a deleted namespace until it is empty.
fn named(value: &mut Value) {
    name_label(value);
    set(value, &["spec"], "finalizers", json!([]));
    if let Some(finalizers) = value.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut)
        && !finalizers.iter().any(|finalizer| finalizer == "kubernetes")
    {
        finalizers.push(json!("kubernetes"));
    }
}

/// Sets the label that contains the namespace's name, so that selectors can select the namespace by name.
fn name_label(namespace: &mut Value) {
    let name = fields::meta(namespace, "name").to_owned();
    // A generated name is not known yet.
    if !name.is_empty() {
        let labels = fields::metadata(namespace).entry("labels").or_insert_with(|| json!({}));
        if labels.is_object() {
            labels["kubernetes.io/metadata.name"] = Value::from(name);
        }
    }
}

fn check(value: &Value, causes: &mut Causes) {
    let (phase, deleting) = (value["status"]["phase"].as_str(), fields::is_deleting(value));
    let fits = if deleting { Some("Terminating") } else { Some("Active") };
    if phase.is_some() && phase != fits {
        let why = "may only be 'Active' if `deletionTimestamp` is empty, and 'Terminating' if it is not";
        let shown = format!("\"{}\"", phase.unwrap_or_default());
        causes.push(Cause::invalid("status.Phase", &shown, why));
    }
}
