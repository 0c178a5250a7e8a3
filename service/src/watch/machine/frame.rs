//! One line of a watch stream: `{"type": …, "object": …}`.
//!
//! Pure. The object is parsed by its type: only ADDED, MODIFIED and DELETED carry one; a bookmark carries a version, an
//! error a Status.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::watch::object::{Object, RawObject};

/// A parsed line.
#[derive(Debug)]
pub(super) enum Frame {
    /// ADDED and MODIFIED: the store knows better which of the two it is.
    Applied(Object),
    /// DELETED, with the version of the deletion.
    Deleted(Object),
    /// Everything up to this version has been sent.
    Bookmark { version: Box<str> },
    /// The version asked for is out of history.
    Expired,
    /// The version asked for is one that the server has not reached.
    Ahead,
    /// Any other error.
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawVersion<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}

/// A Status object as far as it decides anything.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    code: u16,
    reason: String,
    message: String,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Vec<Cause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
}

impl Status {
    /// Reads the body of an answer that is not success; whatever is no Status is an empty one.
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// The message, for people.
    pub fn message(&self) -> Option<&str> {
        Some(&*self.message).filter(|text| !text.is_empty())
    }

    /// Whether the server says that it has not reached the version asked for. Servers before 1.19 say it in words only
    /// (kubernetes/kubernetes#94315).
    pub fn is_ahead(&self) -> bool {
        let causes = self.details.iter().flat_map(|details| &details.causes);
        causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || self.message.starts_with("Too large resource version")
    }
}

impl Frame {
    pub fn parse(line: &[u8]) -> Result<Self, Error> {
        let raw: RawFrame<'_> = serde_json::from_slice(line)?;
        match &*raw.kind {
            "ADDED" | "MODIFIED" => Ok(Self::Applied(object(raw.object)?)),
            "DELETED" => Ok(Self::Deleted(object(raw.object)?)),
            "BOOKMARK" => {
                let bookmark: RawBookmark<'_> = serde_json::from_str(raw.object.get())?;
                let version = bookmark.metadata.resource_version;
                if version.is_empty() {
                    Err(Error::Identity)
                } else {
                    Ok(Self::Bookmark { version: (*version).into() })
                }
            }
            "ERROR" => {
                let status: Status = serde_json::from_str(raw.object.get()).unwrap_or_default();
                if status.code == 410 || matches!(&*status.reason, "Expired" | "Gone") {
                    return Ok(Self::Expired);
                }
                if status.is_ahead() {
                    return Ok(Self::Ahead);
                }
                let retry_after_s = status.details.and_then(|details| details.retry_after_seconds);
                Ok(Self::Error { code: status.code, retry_after_s, message: status.message })
            }
            other => Err(Error::Type(other.to_owned())),
        }
    }
}

fn object(raw: &RawValue) -> Result<Object, Error> {
    let raw: RawObject<'_> = serde_json::from_str(raw.get())?;
    if raw.is_identified() { Ok(raw.into_object()) } else { Err(Error::Identity) }
}
