//! The rules by which kube-apiserver accepts a webhook's answer and reads the decision in it.
//!
//! The mock API server and the judge of webhooks both use these rules, so they decide alike. The rules follow
//! k8s.io/apiserver v0.34.1 (`VerifyAdmissionResponse`, the mutating dispatcher) and the decoders that it uses.
//! client-go's REST client requires neither a media type nor a certain 2xx status. Go's JSON decoder and serde each
//! accept some texts that the other refuses. The module is pure: it uses no connection and no clock.
//!
//! Two rules are stricter than kube-apiserver's. An answer in Protobuf is refused, because no webhook sends Protobuf
//! when asked for JSON. A redirect is not followed.

mod gzip;
mod media;
mod parts;
mod patch;
mod quick;
mod shape;
mod text;

use std::borrow::Cow;

use json_patch::Patch;

pub use gzip::{Problem as Unpacked, unpack};
use parts::Parts;

/// The 2xx statuses that client-go accepts.
const BELIEVED: std::ops::RangeInclusive<u16> = 200..=206;

/// A webhook's answer; its body is decompressed.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub status: u16,
    /// The first `Content-Type` header, if the answer has one.
    pub content_type: Option<&'a [u8]>,
    pub body: &'a [u8],
}

/// The request to which the answer belongs.
#[derive(Debug, Clone, Copy)]
pub struct ReviewRequest<'a> {
    pub uid: &'a [u8],
    /// Whether the webhook may change the object.
    pub mutating: bool,
    /// The version of the `AdmissionReview` that the webhook received.
    pub version: Version,
}

/// The two versions of an `AdmissionReview`, which have the same fields but different requirements for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`.
    V1Beta1,
}

/// The content of a webhook's valid answer.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Whether the webhook allows the request; false if the field `allowed` is absent.
    pub allowed: bool,
    /// The changes of the object; `None` for a denial and for an empty patch.
    pub patch: Option<Patch>,
    /// The status code of a denial; 0 if the answer has no code.
    pub code: i32,
    /// The reason of a denial, for example `Forbidden`.
    pub reason: String,
    pub message: String,
    /// Warnings, which the API server passes on to its client.
    pub warnings: Vec<String>,
}

/// Why an answer contains no decision. If kube-apiserver has a message for the reason, the text is that message.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("HTTP {status}: {body}")]
    Status { status: u16, body: String },
    #[error("0-length response with status code: {status} and content type: {content_type}")]
    Empty { status: u16, content_type: String },
    /// Go cannot parse the `Content-Type`. Any media type that Go can parse is accepted.
    #[error("the Content-Type is `{content_type}`, which cannot be read: {why}")]
    MediaType {
        /// The header as it was sent.
        content_type: String,
        why: media::Problem,
    },
    /// The body is neither JSON nor YAML of an `AdmissionReview`.
    #[error("the body is no AdmissionReview ({why}): {body}")]
    Undecodable { why: String, body: String },
    #[error("webhook response was absent")]
    Absent,
    /// The uid in the answer is not that of the request.
    #[error("expected response.uid=\"{expected}\", got \"{got}\"")]
    Uid {
        /// The uid of the request.
        expected: String,
        /// The uid of the answer.
        got: String,
    },
    #[error("expected webhook response of {expected}, Kind=AdmissionReview, got {api_version}, Kind={kind}")]
    Type {
        api_version: String,
        kind: String,
        /// The required `apiVersion`.
        expected: &'static str,
    },
    /// A validating webhook sent a patch or a patch type, which only mutating webhooks may send.
    #[error("validating webhook may not return response.{0}")]
    Validating(&'static str),
    /// The answer has a patch without its type, or a patch type without a patch.
    #[error("webhook returned response.{has} but not response.{lacks}")]
    Half {
        /// The present field.
        has: &'static str,
        /// The missing field.
        lacks: &'static str,
    },
    #[error("webhook returned invalid response.patchType of \"{0}\"")]
    PatchType(String),
    #[error("unsupported patch type \"{0}\"")]
    Patch(String),
    #[error("received undecodable patch in webhook response: {0}")]
    NoPatch(String),
}

impl Version {
    /// The version of `AdmissionReview` with the name `v1` or `v1beta1`.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// The `apiVersion` of `AdmissionReview`s of this version.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Reads the decision in an answer.
///
/// # Errors
///
/// When kube-apiserver would count the call of the webhook as failed.
pub fn verdict(answer: Answer<'_>, asked: ReviewRequest<'_>) -> Result<Verdict, Refusal> {
    if let Some(content_type) = answer.content_type.filter(|text| !text.trim_ascii().is_empty()) {
        let shown = || String::from_utf8_lossy(content_type).into_owned();
        media::check(content_type).map_err(|why| Refusal::MediaType { content_type: shown(), why })?;
    }
    if !BELIEVED.contains(&answer.status) {
        return Err(Refusal::Status { status: answer.status, body: excerpt(answer.body) });
    }
    if answer.body.is_empty() {
        let content_type = String::from_utf8_lossy(answer.content_type.unwrap_or(b"application/json")).into_owned();
        return Err(Refusal::Empty { status: answer.status, content_type });
    }
    if let Some(parts) = quick::read(answer.body) {
        return decision(parts, asked);
    }
    let undecodable = |why: String| Refusal::Undecodable { why, body: excerpt(answer.body) };
    let text = text::json_of(answer.body).map_err(undecodable)?;
    let parts = parts::read(&text, asked.version).map_err(|problem| match problem {
        parts::Problem::Syntax(why) => undecodable(why),
        parts::Problem::Type { api_version, kind } => {
            Refusal::Type { api_version, kind, expected: asked.version.api_version() }
        }
    })?;
    decision(parts, asked)
}

fn decision(parts: Parts<'_>, asked: ReviewRequest<'_>) -> Result<Verdict, Refusal> {
    let Parts { api_version, kind, response } = parts;
    let Some(response) = response else { return Err(Refusal::Absent) };
    if asked.version == Version::V1 {
        if response.uid.as_bytes() != asked.uid {
            let expected = String::from_utf8_lossy(asked.uid).into_owned();
            return Err(Refusal::Uid { expected, got: response.uid.into_owned() });
        }
        if api_version != asked.version.api_version() || kind != "AdmissionReview" {
            let (api_version, kind) = (api_version.into_owned(), kind.into_owned());
            return Err(Refusal::Type { api_version, kind, expected: asked.version.api_version() });
        }
    }
    let patch = patch::read(response.patch.as_deref(), response.patch_type.as_deref(), response.allowed, asked)?;
    let own = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned).unwrap_or_default();
    Ok(Verdict {
        allowed: response.allowed,
        patch,
        code: response.code,
        reason: own(response.reason),
        message: own(response.message),
        warnings: response.warnings,
    })
}

/// The beginning of a body, for use in an error message.
fn excerpt(body: &[u8]) -> String {
    const BYTES: usize = 160;
    if body.is_empty() {
        return "empty body".to_owned();
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(BYTES)]);
    format!("`{}`", text.escape_debug())
}

#[cfg(test)]
mod tests;
