//! The annotation `last-applied` of `kubectl apply`, if server-side apply now changes the same object.
//!
//! Decides which conflicts the annotation resolves, and updates the annotation. The server uses the annotation only for
//! the manager `kubectl` (`k8s.io/apimachinery/pkg/util/managedfields/internal`, `lastappliedmanager.go` and
//! `lastappliedupdater.go`). After the apply, `kubectl` itself patches `managedFields`: it converts the entry
//! `kubectl-client-side-apply` into an entry of the new manager (`k8s.io/client-go/util/csaupgrade`).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Leaves, Path, Places, Rules};
use crate::object;

/// The name of the manager for which the annotation counts.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Maximum number of bytes of all annotations of an object, as in the API.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

/// The conflicts that the annotation does not resolve: their fields have another value now than in the annotation.
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

/// Writes the applied object into an existing annotation, so that users can return to client-side `kubectl apply`.
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
