//! `AdmissionReview` v1 and v1beta1: read without copying the objects, and answered in the form that the API server
//! checks.
//!
//! Pure. The objects inside stay raw text; readers of their fields walk it.

mod short;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::site::Site;
use super::text::{Escaped, quote};
use super::walk::Pullers;

/// Longest message of a denial, bytes; longer ones are cut at a character and marked.
const MESSAGE_BYTES_MAX: usize = 4096;

/// A review as the API server sends it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review<'a> {
    /// `admission.k8s.io/v1` or `/v1beta1`; echoed.
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub request: Option<Ask<'a>>,
}

/// The request of a review; fields that decide nothing are not read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask<'a> {
    /// Echoed in the answer.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// CREATE, UPDATE, DELETE or CONNECT.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    /// The kind of `object`.
    #[serde(borrow, default)]
    pub kind: Option<Kind<'a>>,
    /// The user that made the request.
    #[serde(borrow, default)]
    pub user_info: Option<User<'a>>,
    /// The object's namespace, for the log.
    #[serde(borrow, default)]
    pub namespace: Option<Cow<'a, str>>,
    /// The object's name, for the log. Empty while the API server has still to make a name.
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    /// `status`, `scale`, `ephemeralcontainers` …
    #[serde(borrow, default)]
    pub sub_resource: Option<Cow<'a, str>>,
    /// Whether this is a dry run, for which no alert is sent.
    #[serde(default, deserialize_with = "flag")]
    pub dry_run: bool,
    /// The object as it would be stored, raw.
    #[serde(borrow, default, deserialize_with = "raw")]
    pub object: Option<&'a str>,
    /// The stored object, raw.
    #[serde(borrow, default, deserialize_with = "raw")]
    pub old_object: Option<&'a str>,
    /// Every image of a new object, if they were found while the review was read.
    #[serde(skip)]
    pub sites: Option<Vec<Site>>,
    /// The accounts and secrets that its images are pulled with, if `sites` is set.
    #[serde(skip)]
    pub pullers: Pullers,
}

/// The kind of an object; its version decides nothing.
#[derive(Deserialize)]
pub struct Kind<'a> {
    /// The API group, empty for the core.
    #[serde(borrow, default)]
    pub group: Cow<'a, str>,
    #[serde(borrow, default)]
    pub kind: Cow<'a, str>,
}

/// The requesting user, as the API server authenticated it.
#[derive(Deserialize)]
pub struct User<'a> {
    /// Such as `system:serviceaccount:kube-system:deployment-controller`.
    #[serde(borrow, default)]
    pub username: Cow<'a, str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Allowed, with a JSON patch if there are changes.
    Allow {
        /// RFC 6902 document.
        patch: Option<String>,
        notes: Notes,
    },
    /// Refused with 403 and this message.
    Deny {
        /// For the author of the object.
        message: String,
        notes: Notes,
    },
    /// Not decided: HTTP 500, so that the webhook's `failurePolicy` decides.
    Error {
        /// For the log of the API server.
        message: String,
    },
}

/// Additions to an answer besides its decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// Messages for the user.
    pub warnings: Vec<String>,
    /// Entries of the audit log; the API server puts the name of the webhook before each key.
    pub annotations: BTreeMap<&'static str, Escaped>,
}

impl Notes {
    /// The note of an exempt object.
    pub fn exempt(reason: &str) -> Self {
        Self { warnings: Vec::new(), annotations: BTreeMap::from([("exempt", Escaped::from(reason))]) }
    }
}

/// Why a body is not a review.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not JSON, or not of the expected shape.
    #[error("the body is not an AdmissionReview: {0}")]
    Json(#[from] serde_json::Error),
    #[error(
        "the body is {kind} in {api_version}; this webhook answers AdmissionReview in admission.k8s.io/v1 and v1beta1"
    )]
    Kind { kind: String, api_version: String },
    /// The review has no request.
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

pub fn parse(body: &[u8]) -> Result<(Cow<'_, str>, Ask<'_>), Error> {
    // Checked for UTF-8 as a whole, because skipped parts are not read.
    let review = match simdutf8::basic::from_utf8(body).map(short::read) {
        Ok(Ok(review)) => review,
        _ => serde_json::from_slice(body)?,
    };
    if review.kind != "AdmissionReview"
        || !matches!(&*review.api_version, "admission.k8s.io/v1" | "admission.k8s.io/v1beta1")
    {
        return Err(Error::Kind { kind: review.kind.into(), api_version: review.api_version.into() });
    }
    Ok((review.api_version, review.request.ok_or(Error::NoRequest)?))
}

/// Reads a flag; `null` counts as false.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<bool>::deserialize(deserializer)?.unwrap_or_default())
}

fn raw<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a str>, D::Error> {
    Ok(Option::<&'de RawValue>::deserialize(deserializer)?.map(RawValue::get))
}

/// Room for an answer without its patch.
const ANSWER_BYTES: usize = 512;

/// Writes the answer to a review of `api_version` with `uid`; `Err` is the text of an HTTP 500.
pub fn answer(api_version: &str, uid: &str, decision: Decision) -> Result<Vec<u8>, String> {
    let patched = if let Decision::Allow { patch: Some(patch), .. } = &decision { 2 * patch.len() } else { 0 };
    let mut out = String::with_capacity(ANSWER_BYTES + patched);
    out.push_str(r#"{"apiVersion":"#);
    quote(&mut out, api_version);
    out.push_str(r#","kind":"AdmissionReview","response":{"uid":"#);
    quote(&mut out, uid);
    let notes = match decision {
        Decision::Allow { patch, notes } => {
            out.push_str(r#","allowed":true"#);
            // Both or neither: the API server refuses an answer with one of patch and patchType.
            if let Some(patch) = patch {
                out.push_str(r#","patch":""#);
                base64_simd::STANDARD.encode_append(patch, &mut out);
                out.push_str(r#"","patchType":"JSONPatch""#);
            }
            notes
        }
        Decision::Deny { message, notes } => {
            out.push_str(r#","allowed":false,"status":{"code":403,"reason":"Forbidden","message":"#);
            quote(&mut out, &cut(message));
            out.push('}');
            notes
        }
        Decision::Error { message } => return Err(cut(message)),
    };
    if !notes.annotations.is_empty() {
        out.push_str(r#","auditAnnotations":"#);
        for (index, (key, text)) in notes.annotations.iter().enumerate() {
            out.push(if index == 0 { '{' } else { ',' });
            quote(&mut out, key);
            out.push(':');
            text.quote(&mut out);
        }
        out.push('}');
    }
    if !notes.warnings.is_empty() {
        out.push_str(r#","warnings":"#);
        for (index, text) in notes.warnings.iter().enumerate() {
            out.push(if index == 0 { '[' } else { ',' });
            quote(&mut out, text);
        }
        out.push(']');
    }
    out.push_str("}}");
    Ok(out.into_bytes())
}

fn cut(mut message: String) -> String {
    const MARK: &str = " … (cut)";
    if message.len() > MESSAGE_BYTES_MAX {
        let mut end = MESSAGE_BYTES_MAX - MARK.len();
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(MARK);
    }
    message
}
