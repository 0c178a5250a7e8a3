//! `Namespace`: a scope for names.

use serde_json::{Value, json};

use super::print::Printer;
use super::{Causes, Ending, Generation, Kind, Meaning, Names, Subresource};
use crate::fields::{self, set};
use crate::status::Cause;

pub(super) const NAMESPACE: Kind = Kind {
    short_names: &["ns"],
    about: "A room for names: most objects live in one and go with it.",
    status: true,
    subresources: &[Subresource {
        name: "finalize",
        kind: "Namespace",
        group_version: ("", ""),
        verbs: &["update"],
        part: None,
    }],
    messages: &[
        "Namespace 1:metadata:ObjectMeta 2:spec:NamespaceSpec 3:status:NamespaceStatus",
        "NamespaceSpec 1:finalizers:[s]",
        "NamespaceStatus 1:phase:s 2:conditions:[NamespaceCondition]",
        "NamespaceCondition 1:type:s! 2:status:s! 4:lastTransitionTime:T 5:reason:s 6:message:s",
    ],
    selectable: &[("status.phase", &[])],
    printer: Printer {
        columns: "Name, Status, Age",
        cells: |row| vec![row.name(), row.text("/status/phase").into(), row.age()],
    },
    defaults: name_label,
    new: |value| set(value, &["status"], "phase", json!("Active")),
    named,
    names: Names::Label,
    check,
    generation: Generation::None,
    deletes_collections: false,
    // Those that the plugin `NamespaceLifecycle` protects.
    immortal: &["default", "kube-system", "kube-public"],
    ending: Ending::Emptied,
    meaning: Meaning::Namespace,
    ..Kind::cluster("", &["v1"], "namespaces", "Namespace")
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
