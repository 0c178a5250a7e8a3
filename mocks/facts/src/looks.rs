//! The fields of an object that show its controller's progress. This module does no I/O.

use serde_json::Value;

use super::Progress;

/// The field in which nearly every API stores the generation that the controller has handled.
const OBSERVED_GENERATION: &str = "/status/observedGeneration";

/// The names of the fields in which an object shows its controller's progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    /// The path of the field with the handled generation or version; see [`seek`].
    pub observed: String,
    /// The controller's finalizer.
    pub finalizer: Option<String>,
    /// Finalizers that the harness sets, which prove nothing about the controller.
    pub own: Vec<String>,
}

impl Default for Looks {
    fn default() -> Self {
        Self { observed: OBSERVED_GENERATION.to_owned(), finalizer: None, own: Vec::new() }
    }
}

impl Looks {
    /// The progress of the controller that an object shows.
    pub fn at(&self, object: &Value) -> Progress {
        let meta = &object["metadata"];
        let finalizers = || meta["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let held = self.finalizer.as_deref().is_some_and(|wanted| finalizers().any(|one| one == wanted));
        let is_ours = |one: &str| self.own.iter().any(|own| own == one);
        Progress {
            guarded: finalizers().any(|one| !is_of_kubernetes(one) && !is_ours(one)),
            generation: meta["generation"].as_i64().unwrap_or(0),
            observed: seek(object, &self.observed).and_then(number),
            held,
            leaving: meta["deletionTimestamp"].is_string(),
        }
    }
}

/// Whether the control plane itself removes this finalizer: a finalizer without a domain (`orphan`,
/// `foregroundDeletion`), or one such as `kubernetes.io/pvc-protection`.
fn is_of_kubernetes(finalizer: &str) -> bool {
    finalizer.split_once('/').is_none_or(|(domain, _)| domain == "kubernetes.io" || domain.ends_with(".kubernetes.io"))
}

/// The value at a path, which is a JSON pointer (RFC 6901). A segment such as `type=Ready` chooses the list entry whose
/// `type` is `Ready`.
pub fn seek<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    path.strip_prefix('/')?.split('/').try_fold(value, |value, word| {
        let word = word.replace("~1", "/").replace("~0", "~");
        match value {
            Value::Object(map) => map.get(&word),
            Value::Array(list) => match word.split_once('=') {
                Some((key, wanted)) => list.iter().find(|entry| entry[key].as_str() == Some(wanted)),
                None => list.get(word.parse::<usize>().ok()?),
            },
            _ => None,
        }
    })
}

/// Reads a generation or version: a number, or a number as text, as in annotations and labels.
pub fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_follow_the_rfc_and_find_entries_by_a_key() {
        let object = json!({"a/b": {"~": [1, {"x": 7}]}, "list": [{"type": "A", "n": 1}, {"type": "Ready", "n": "2"}]});
        let at = |path: &str| seek(&object, path).and_then(number);
        assert_eq!(at("/a~1b/~0/1/x"), Some(7));
        assert_eq!(at("/list/type=Ready/n"), Some(2));
        for nothing in ["/list/type=Gone/n", "/list/9/n", "/a~1b", "/none/x", "", "list"] {
            assert_eq!(at(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn an_object_tells_how_far_its_controller_is() {
        let looks = Looks {
            observed: "/metadata/annotations/a.b~1seen".into(),
            finalizer: Some("a.b/f".into()),
            ..Looks::default()
        };
        let object = json!({"metadata": {"generation": 3, "annotations": {"a.b/seen": "2"},
            "finalizers": ["x", "a.b/f"], "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(
            looks.at(&object),
            Progress { generation: 3, observed: Some(2), held: true, leaving: true, guarded: true }
        );
        assert_eq!(Looks::default().at(&json!({})), Progress::default());
    }

    /// Finalizers that Kubernetes or the harness removes prove nothing about the object's controller.
    #[test]
    fn only_the_finalizers_of_others_guard_an_object() {
        let looks = Looks { own: vec!["longhaul.dev/hold".into()], ..Looks::default() };
        let guarded = |finalizers: &[&str]| looks.at(&json!({"metadata": {"finalizers": finalizers}})).guarded;
        assert!(!guarded(&[]) && !guarded(&["orphan", "foregroundDeletion", "kubernetes.io/pvc-protection"]));
        assert!(!guarded(&["longhaul.dev/hold"]) && guarded(&["longhaul.dev/hold", "cache.example.com/finalizer"]));
    }
}
