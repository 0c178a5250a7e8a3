//! Objects, events and lists with the few fields that this client needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::revision::Revision;

/// The annotation that `--handler annotation` writes, on objects without a `status`.
pub const MARK: &str = "planted.longhaul.dev/handled";
/// The annotation of the bookmark that ends the initial events (KEP-3157).
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// One version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The permanent identity of the object.
    pub uid: Arc<str>,
    /// The namespace of the object; empty for cluster-wide objects.
    pub namespace: Arc<str>,
    /// The name, which another object can have after this object is deleted.
    pub name: Arc<str>,
    /// The resourceVersion.
    pub revision: Revision,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// `status.observedGeneration`.
    pub observed: Option<i64>,
    /// Whether the object has the annotation [`MARK`].
    pub marked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Kind {
    Added,
    Modified,
    Deleted,
    /// A bookmark: no event with an older revision will follow.
    Bookmark,
    /// An ERROR event with a `Status`.
    Error,
}

/// One event of a watch.
#[derive(Debug, Clone)]
pub struct Event {
    pub kind: Kind,
    /// The object; `None` for bookmarks and errors.
    pub object: Option<Object>,
    /// The revision that the watch has reached with this event; `None` for errors.
    pub revision: Option<Revision>,
    /// Whether this is the bookmark that ends the initial events.
    pub initial_end: bool,
    /// The `Status` of an ERROR event.
    pub status: Value,
    /// The event's line as bytes, for the mistake that keeps it.
    pub raw: Option<Bytes>,
}

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    pub items: Vec<Object>,
    /// The revision of the whole list.
    pub revision: Option<Revision>,
    /// The token of the next page; `None` on the last page.
    pub next: Option<String>,
}

#[derive(Deserialize)]
struct RawEvent {
    #[serde(rename = "type")]
    kind: Kind,
    object: Value,
}

#[derive(Deserialize)]
struct RawPage {
    #[serde(default)]
    metadata: RawListMeta,
    items: Option<Vec<RawObject>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct RawListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(rename = "continue", default)]
    next: String,
}

#[derive(Deserialize)]
struct RawObject {
    metadata: RawMeta,
    #[serde(default)]
    status: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMeta {
    #[serde(default)]
    uid: Arc<str>,
    #[serde(default)]
    namespace: Arc<str>,
    #[serde(default)]
    name: Arc<str>,
    #[serde(default)]
    resource_version: String,
    generation: Option<i64>,
    annotations: Option<BTreeMap<String, String>>,
}

impl Event {
    /// Parses one line of a watch.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let raw: RawEvent = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        if raw.kind == Kind::Error {
            return Ok(Self {
                kind: raw.kind,
                object: None,
                revision: None,
                initial_end: false,
                status: raw.object,
                raw: None,
            });
        }
        let object: RawObject = serde_json::from_value(raw.object).map_err(|error| error.to_string())?;
        let revision = Revision::new(&object.metadata.resource_version);
        let ends = object.metadata.annotations.as_ref().and_then(|all| all.get(INITIAL_END));
        let initial_end = raw.kind == Kind::Bookmark && ends.is_some_and(|value| value == "true");
        let object = match raw.kind {
            Kind::Bookmark => None,
            _ => Some(Object::from_raw(object)?),
        };
        Ok(Self { kind: raw.kind, object, revision, initial_end, status: Value::Null, raw: None })
    }
}

impl Page {
    /// Parses the body of an answer as one page of a list.
    pub fn parse(body: &[u8]) -> Result<Self, String> {
        let raw: RawPage = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let items = raw.items.unwrap_or_default().into_iter().map(Object::from_raw).collect::<Result<_, _>>()?;
        let next = (!raw.metadata.next.is_empty()).then_some(raw.metadata.next);
        Ok(Self { items, revision: Revision::new(&raw.metadata.resource_version), next })
    }
}

impl Object {
    /// Parses the body of an answer as an object; `None` if it is something else.
    pub fn parse(body: &[u8]) -> Option<Self> {
        Self::from_raw(serde_json::from_slice(body).ok()?).ok()
    }

    fn from_raw(raw: RawObject) -> Result<Self, String> {
        let meta = raw.metadata;
        let revision = Revision::new(&meta.resource_version).ok_or("an object without resourceVersion")?;
        if meta.uid.is_empty() {
            return Err("an object without uid".to_owned());
        }
        let marked = meta.annotations.is_some_and(|all| all.contains_key(MARK));
        let observed = raw.status.as_ref().and_then(|status| status["observedGeneration"].as_i64());
        let (uid, namespace, name, generation) = (meta.uid, meta.namespace, meta.name, meta.generation);
        Ok(Self { uid, namespace, name, revision, generation, observed, marked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_each_kind_are_read() {
        let event = Event::parse(
            br#"{"type":"ADDED","object":{"metadata":{"uid":"u","name":"a","resourceVersion":"7",
            "generation":2},"status":{"observedGeneration":1}}}"#,
        )
        .unwrap();
        let object = event.object.unwrap();
        assert_eq!((&*object.uid, object.revision.as_str(), object.generation), ("u", "7", Some(2)));
        assert_eq!((object.observed, object.marked), (Some(1), false));
        let end = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",
            "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        let end = Event::parse(end).unwrap();
        assert!(end.initial_end && end.object.is_none());
        let error = Event::parse(br#"{"type":"ERROR","object":{"code":410,"reason":"Expired"}}"#).unwrap();
        assert_eq!((error.kind, error.status["code"].as_u64()), (Kind::Error, Some(410)));
        for bad in ["", "{", r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}"#] {
            Event::parse(bad.as_bytes()).unwrap_err();
        }
    }

    #[test]
    fn a_page_without_token_is_the_last() {
        let page = Page::parse(br#"{"metadata":{"resourceVersion":"5","continue":"t"},"items":[]}"#).unwrap();
        assert_eq!(page.next.as_deref(), Some("t"));
        let page = Page::parse(br#"{"metadata":{"resourceVersion":"5"},"items":null}"#).unwrap();
        assert_eq!((page.next, page.items.len()), (None, 0));
    }
}
