//! Parses one line of a watch stream: `{"type": …, "object": …}`.
//!
//! The type decides how the field `object` is parsed: ADDED, MODIFIED and DELETED have an object, a bookmark has a
//! version, an error has a Status.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::object::{Kind, Object, RawObject};
use crate::store::Store;
use service_core::kube::Status;

#[derive(Debug)]
pub(super) enum Frame<K> {
    /// ADDED or MODIFIED: only a comparison with the store shows which of the two applies.
    Applied(Object<K>),
    /// DELETED; the object has the version of the deletion.
    Deleted(Object<K>),
    /// All events up to `version` have been sent.
    Bookmark { version: Box<str>, initial_end: bool },
    /// The server no longer has the requested resource version.
    Expired,
    /// The server has not reached the requested resource version.
    Ahead,
    /// The server reported an error other than `Expired` and `Ahead`.
    Error { code: u16, retry_after_s: Option<u64>, message: String },
}

/// Why a line is not an event.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("not a watch event: {0}")]
    Json(#[from] serde_json::Error),
    #[error("an event of type `{0}` is not known")]
    Type(String),
    #[error("an event without uid, name or resourceVersion")]
    Identity,
}

#[derive(Deserialize)]
struct RawFrame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct RawBookmark<'a> {
    #[serde(borrow)]
    metadata: RawVersion<'a>,
}

/// The annotation of the bookmark that ends a streamed list (KEP-3157).
const INITIAL_END: &str = "k8s.io/initial-events-end";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawVersion<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl<K: Kind> Frame<K> {
    pub fn parse(line: &[u8], store: &Store<K>) -> Result<Self, Error> {
        let raw: RawFrame<'_> = serde_json::from_slice(line)?;
        match &*raw.kind {
            "ADDED" | "MODIFIED" => Ok(Self::Applied(object(raw.object, store)?)),
            "DELETED" => Ok(Self::Deleted(object(raw.object, store)?)),
            "BOOKMARK" => {
                let bookmark: RawBookmark<'_> = serde_json::from_str(raw.object.get())?;
                let version = bookmark.metadata.resource_version;
                if version.is_empty() {
                    Err(Error::Identity)
                } else {
                    let annotations = bookmark.metadata.annotations.unwrap_or_default();
                    let initial_end = annotations.get(INITIAL_END).is_some_and(|value| value == "true");
                    Ok(Self::Bookmark { version: (*version).into(), initial_end })
                }
            }
            "ERROR" => {
                let status: Status = serde_json::from_str(raw.object.get()).unwrap_or_default();
                if status.is_expired() {
                    return Ok(Self::Expired);
                }
                if status.is_ahead() {
                    return Ok(Self::Ahead);
                }
                let message = status.message().unwrap_or_default().to_owned();
                Ok(Self::Error { code: status.code(), retry_after_s: status.retry_after_s(), message })
            }
            other => Err(Error::Type(other.to_owned())),
        }
    }
}

fn object<K>(raw: &RawValue, store: &Store<K>) -> Result<Object<K>, Error> {
    let raw: RawObject<'_> = serde_json::from_str(raw.get())?;
    if raw.is_identified() { Ok(store.read(raw)) } else { Err(Error::Identity) }
}
