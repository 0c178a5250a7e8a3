//! `AdmissionReview` v1 and v1beta1: parsed without copies of the objects, and answered as the API server requires.
//!
//! Objects in a review are kept as JSON text; code that needs a field searches the text.

mod short;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::site::Site;
use super::text::{Escaped, quote};
use super::walk::Pullers;

/// Maximum number of bytes of a denial's message. A longer message is cut after a whole character, and the cut is
/// marked.
const MESSAGE_BYTES_MAX: usize = 4096;

/// A review as the API server sends it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review<'a> {
    /// `admission.k8s.io/v1` or `/v1beta1`; the answer repeats it.
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub request: Option<Ask<'a>>,
}

/// The request of a review; fields that affect no decision are not parsed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask<'a> {
    /// The uid of the review, which the answer repeats.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// The operation: CREATE, UPDATE, DELETE or CONNECT.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    #[serde(borrow, default)]
    pub kind: Option<Kind<'a>>,
    #[serde(borrow, default)]
    pub user_info: Option<User<'a>>,
    /// The object's namespace, for the log.
    #[serde(borrow, default)]
    pub namespace: Option<Cow<'a, str>>,
    /// The object's name, for the log. The name is empty if the API server has not generated it yet.
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    /// The subresource, such as `status`, `scale` or `ephemeralcontainers`.
    #[serde(borrow, default)]
    pub sub_resource: Option<Cow<'a, str>>,
    /// Whether this is a dry run, which causes no alert.
    #[serde(default, deserialize_with = "flag")]
    pub dry_run: bool,
    /// The object as it would be stored, as JSON text.
    #[serde(borrow, default, deserialize_with = "raw")]
    pub object: Option<&'a str>,
    /// The stored object, as JSON text.
    #[serde(borrow, default, deserialize_with = "raw")]
    pub old_object: Option<&'a str>,
    /// All images of a new object, if they were found while the review was parsed.
    #[serde(skip)]
    pub sites: Option<Vec<Site>>,
    /// The service accounts and Secrets for pulling the images, if `sites` is set.
    #[serde(skip)]
    pub pullers: Pullers,
}

/// The kind of an object, without its version, which affects no decision.
#[derive(Deserialize)]
pub struct Kind<'a> {
    /// The API group, empty for the core.
    #[serde(borrow, default)]
    pub group: Cow<'a, str>,
    #[serde(borrow, default)]
    pub kind: Cow<'a, str>,
}

/// The user that sent the request, as authenticated by the API server.
#[derive(Deserialize)]
pub struct User<'a> {
    /// The user name, such as `system:serviceaccount:kube-system:deployment-controller`.
    #[serde(borrow, default)]
    pub username: Cow<'a, str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The object is allowed, with a JSON patch if an image changes.
    Allow { patch: Option<String>, notes: Notes },
    /// The object is refused with status 403 and this message.
    Deny {
        /// The message for the author of the object.
        message: String,
        notes: Notes,
    },
    /// The review is undecided and answered with HTTP 500, so that the webhook's `failurePolicy` decides.
    Error {
        /// The message for the API server's log.
        message: String,
    },
}

/// Warnings and audit annotations of an answer to a review.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    pub warnings: Vec<String>,
    /// Audit annotations of the answer. The API server prefixes each key with the webhook's name.
    pub annotations: BTreeMap<&'static str, Escaped>,
}

impl Notes {
    /// The audit annotation of an exempt object.
    pub fn exempt(reason: &str) -> Self {
        Self { warnings: Vec::new(), annotations: BTreeMap::from([("exempt", Escaped::from(reason))]) }
    }
}

/// Why a body is not a valid review.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the body is not an AdmissionReview: {0}")]
    Json(#[from] serde_json::Error),
    #[error(
        "the body is {kind} in {api_version}; this webhook answers AdmissionReview in admission.k8s.io/v1 and v1beta1"
    )]
    Kind { kind: String, api_version: String },
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

/// Parses a JSON boolean; `null` counts as false.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<bool>::deserialize(deserializer)?.unwrap_or_default())
}

fn raw<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a str>, D::Error> {
    Ok(Option::<&'de RawValue>::deserialize(deserializer)?.map(RawValue::get))
}

/// Number of bytes that are allocated for an answer without its patch.
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
