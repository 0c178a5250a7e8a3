//! The fast path: reads the answers of nearly every webhook without copying them. The fast path accepts an answer in
//! which each known field occurs at most once and has the right type. [`super::parts`] reads all other answers, as
//! leniently as Go.

use std::borrow::Cow;

use serde::Deserialize;

use super::parts::{Answered, Parts};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Review<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    response: Response<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Response<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    allowed: bool,
    #[serde(default, borrow)]
    patch: Option<Text<'a>>,
    #[serde(default, borrow)]
    patch_type: Option<Text<'a>>,
    #[serde(default, borrow)]
    status: Option<Status<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Status<'a> {
    #[serde(default, rename = "metadata")]
    _metadata: Option<Nothing>,
    #[serde(default, borrow, rename = "status")]
    _result: Option<Text<'a>>,
    #[serde(default, borrow)]
    message: Option<Text<'a>>,
    #[serde(default, borrow)]
    reason: Option<Text<'a>>,
    #[serde(default)]
    code: i32,
}

/// An empty `metadata`; the fast path accepts no other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A text that is copied only if it contains escapes. Serde borrows a text within an `Option` only if the text has a
/// type of its own.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

pub(crate) fn read(body: &[u8]) -> Option<Parts<'_>> {
    let Review { api_version, kind, response } = serde_json::from_slice(body).ok()?;
    let Response { uid, allowed, patch, patch_type, status } = response;
    let (message, reason, code) = match status {
        Some(Status { message, reason, code, .. }) => (message.map(|text| text.0), reason.map(|text| text.0), code),
        None => (None, None, 0),
    };
    // Another type would be refused for another reason.
    if kind != "AdmissionReview" || !api_version.starts_with("admission.k8s.io/v1") {
        return None;
    }
    let patch = patch.map(|text| text.0);
    let patch_type = patch_type.map(|text| text.0);
    let response = Some(Answered { uid, allowed, patch, patch_type, message, reason, code, warnings: Vec::new() });
    Some(Parts { api_version, kind, response })
}
