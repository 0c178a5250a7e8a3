//! The `last-applied` annotation of `kubectl apply`, when the same object is now applied by the server.
//!
//! Owns which conflicts that annotation settles, and updating it. The server does both, and only for the manager
//! `kubectl` (`k8s.io/apimachinery/pkg/util/managedfields/internal`, `lastappliedmanager.go` and
//! `lastappliedupdater.go`). Turning the entry `kubectl-client-side-apply` into one of the new manager is kubectl's own
//! task: it patches `managedFields` afterwards (`k8s.io/client-go/util/csaupgrade`).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Leaves, Path, Places, Rules};
use crate::object;

/// The manager for which the annotation counts; a client with another name avoids it.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Largest size of all annotations of an object together (the API's own limit).
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

/// The conflicts that remain: those about fields whose current value differs from the last applied one.
pub(super) fn beyond(live: &Value, conflicts: &[(String, Path)], rules: Rules<'_>) -> Vec<(String, Path)> {
    let noted = live["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
    let Ok(applied @ Value::Object(_)) = serde_json::from_str(noted) else { return conflicts.to_vec() };
    let mut leaves = Leaves { rules, found: Vec::new(), wrong: Vec::new() };
    leaves.collect(&applied, &mut Vec::new());
    if !leaves.wrong.is_empty() {
        return conflicts.to_vec();
    }
    let mut places = Places::default();
    let is_so = |(path, value): &(Path, Value)| path.find(live, &mut places) == Some(value);
    let settled: HashSet<Path> = leaves.found.into_iter().filter(is_so).map(|(path, _)| path).collect();
    conflicts.iter().filter(|(_, path)| !settled.contains(path)).cloned().collect()
}

/// Updates an existing annotation with `intent`, so that a return to `kubectl apply` is possible.
pub(super) fn note(value: &mut Value, intent: &Value) {
    let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else { return };
    if !annotations.contains_key(ANNOTATION) {
        return;
    }
    let mut noted = intent.clone();
    object::metadata(&mut noted).remove("managedFields");
    if let Some(others) = noted.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        others.remove(ANNOTATION);
    }
    annotations.insert(ANNOTATION.to_owned(), Value::from(format!("{noted}\n")));
    if bytes(annotations) > ANNOTATIONS_MAX_BYTES {
        annotations.remove(ANNOTATION);
    }
}

fn bytes(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}
