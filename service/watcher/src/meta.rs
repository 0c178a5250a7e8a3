//! The kept part of an object: what filters and finalizers look at. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use service_watch::{Kind, Object, RawObject};

/// What `kubectl apply` leaves in each object: a copy of it, which nobody filters by.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The metadata of an object beside its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// `metadata.labels` as JSON; most objects have few, and most filters look at none.
    labels: Option<Box<str>>,
    /// The same of `metadata.annotations`, without the copy that `kubectl apply` makes.
    annotations: Option<Box<str>>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `metadata.finalizers`.
    pub finalizers: Box<[Box<str>]>,
}

impl Kind for Meta {
    fn read(raw: &RawObject<'_>) -> Self {
        let mut annotations: Option<Box<str>> = raw.annotations_text().map(Into::into);
        if annotations.as_deref().is_some_and(|text| text.contains(LAST_APPLIED)) {
            let mut map = raw.annotations();
            map.remove(LAST_APPLIED);
            annotations = (!map.is_empty()).then(|| json!(map).to_string().into());
        }
        Self {
            labels: raw.labels_text().map(Into::into),
            annotations,
            deleting: raw.is_deleting(),
            finalizers: raw.finalizers(),
        }
    }
}

impl Meta {
    /// `metadata.labels`.
    pub fn labels(&self) -> BTreeMap<String, String> {
        map(self.labels.as_deref())
    }

    /// `metadata.annotations` without the copy that `kubectl apply` makes.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        map(self.annotations.as_deref())
    }
}

fn map(text: Option<&str>) -> BTreeMap<String, String> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// An object of which only the metadata is known, as the API server would write it.
pub fn partial(object: &Object<Meta>) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": {
            "namespace": &*object.key.namespace,
            "name": &*object.key.name,
            "uid": &*object.uid,
            "resourceVersion": &*object.version,
            "labels": object.body.labels(),
            "annotations": object.body.annotations(),
            "finalizers": object.body.finalizers,
        },
    })
}

/// An object out of its JSON, for tests.
#[cfg(test)]
pub fn object(text: &str) -> Object<Meta> {
    serde_json::from_str::<RawObject<'_>>(text).expect("a test writes objects").into_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_of_kubectl_is_not_kept() {
        let text = r#"{"metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"5","labels":{"x":"y"},
            "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{…}","k":"v"},
            "deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]}}"#;
        let known = object(text);
        assert_eq!(known.body.annotations.as_deref(), Some(r#"{"k":"v"}"#));
        assert!(known.body.deleting);
        assert_eq!(partial(&known)["metadata"]["labels"]["x"], "y");
        let bare = object(r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"5","deletionTimestamp":null}}"#);
        assert_eq!((bare.body.labels.as_ref(), bare.body.deleting), (None, false));
    }
}
