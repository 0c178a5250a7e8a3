//! What `kubectl apply` noted in an annotation, when the same object is applied by the server from now on.
//!
//! Owns which conflicts that note settles, and keeping it as it should be. Both are done by the server and for the manager
//! `kubectl` only (`k8s.io/apimachinery/pkg/util/managedfields/internal`, `lastappliedmanager.go` and `lastappliedupdater.go`).
//! That the entry `kubectl-client-side-apply` becomes one of the new manager is kubectl's own part: it patches `managedFields`
//! afterwards (`k8s.io/client-go/util/csaupgrade`).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Leaves, Path, Places, Rules};
use crate::object;

/// Whoever wants none of this applies by another name.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// All annotations of an object together (the API's own limit).
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

/// The conflicts about something else than what was applied before and is still so.
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

/// Notes `intent` where something was noted before, so that going back to `kubectl apply` is possible.
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
