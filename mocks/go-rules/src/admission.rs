//! The rules by which kube-apiserver accepts a webhook's answers, and the verdicts that it reads in them.
//!
//! A mock API server and a judge of webhooks decide alike because both use these rules. They are those of
//! k8s.io/apiserver v0.34.1 (`VerifyAdmissionResponse`, the mutating dispatcher) and of its readers: client-go's REST
//! client, which requires neither a media type nor a certain 2xx, and the decoder of Go's JSON, which accepts some
//! texts that serde refuses and the other way round. Pure: no connection, no clock.
//!
//! Two rules are narrower: protobuf is not read, because no webhook sends it when asked for JSON, and a redirect is not
//! followed.

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

/// The 2xx that client-go accepts.
const BELIEVED: std::ops::RangeInclusive<u16> = 200..=206;

/// An answer, unpacked if it was compressed.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The first `Content-Type`, if there is one.
    pub content_type: Option<&'a [u8]>,
    pub body: &'a [u8],
}

/// The request that an answer is checked against.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub uid: &'a [u8],
    /// Whether the webhook may change the object.
    pub mutating: bool,
    /// The version of the review that it was sent.
    pub version: Version,
}

/// The two forms of a review: the same fields, but other requirements for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`.
    V1Beta1,
}

/// The content of a valid answer.
#[derive(Debug, Default)]
pub struct Verdict {
    /// An absent value means no.
    pub allowed: bool,
    /// The changes; never an empty patch, and `None` for a denial.
    pub patch: Option<Patch>,
    /// The code of a denial's status; 0 if it has none.
    pub code: i32,
    /// For example `Forbidden`.
    pub reason: String,
    /// The message of a denial.
    pub message: String,
    /// Shown to the client.
    pub warnings: Vec<String>,
}

/// Why an answer is no verdict, in the real server's words if it has any.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A status that is no success.
    #[error("HTTP {status}: {body}")]
    Status {
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// No body.
    #[error("0-length response with status code: {status} and content type: {content_type}")]
    Empty { status: u16, content_type: String },
    /// A `Content-Type` that Go cannot parse. The named type does not matter.
    #[error("the Content-Type is `{content_type}`, which cannot be read: {why}")]
    MediaType {
        /// As it was sent.
        content_type: String,
        why: media::Problem,
    },
    /// Neither JSON nor YAML of a review.
    #[error("the body is no AdmissionReview ({why}): {body}")]
    Undecodable {
        why: String,
        /// The beginning of the body.
        body: String,
    },
    /// A review without an answer.
    #[error("webhook response was absent")]
    Absent,
    /// The answer to another request.
    #[error("expected response.uid=\"{expected}\", got \"{got}\"")]
    Uid {
        /// The uid of the request.
        expected: String,
        /// The uid of the answer.
        got: String,
    },
    /// An object of another type.
    #[error("expected webhook response of {expected}, Kind=AdmissionReview, got {api_version}, Kind={kind}")]
    Type {
        api_version: String,
        kind: String,
        /// The required `apiVersion`.
        expected: &'static str,
    },
    /// A patch, or a patch type, of a webhook that may only validate.
    #[error("validating webhook may not return response.{0}")]
    Validating(&'static str),
    /// A patch without its type, or a type without a patch.
    #[error("webhook returned response.{has} but not response.{lacks}")]
    Half {
        /// The present field.
        has: &'static str,
        /// The missing field.
        lacks: &'static str,
    },
    /// A patch with an empty type.
    #[error("webhook returned invalid response.patchType of \"{0}\"")]
    PatchType(String),
    /// A patch of an unknown type.
    #[error("unsupported patch type \"{0}\"")]
    Patch(String),
    /// An invalid patch.
    #[error("received undecodable patch in webhook response: {0}")]
    NoPatch(String),
}

impl Version {
    /// The version named `v1` or `v1beta1`.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// The `apiVersion` of its reviews.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// The verdict of an answer.
///
/// # Errors
///
/// When the server would count the call as failed.
pub fn verdict(answer: Answer<'_>, asked: Asked<'_>) -> Result<Verdict, Refusal> {
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
        return said(parts, asked);
    }
    let undecodable = |why: String| Refusal::Undecodable { why, body: excerpt(answer.body) };
    let text = text::json_of(answer.body).map_err(undecodable)?;
    let parts = parts::read(&text, asked.version).map_err(|problem| match problem {
        parts::Problem::Syntax(why) => undecodable(why),
        parts::Problem::Type { api_version, kind } => {
            Refusal::Type { api_version, kind, expected: asked.version.api_version() }
        }
    })?;
    said(parts, asked)
}

fn said(parts: Parts<'_>, asked: Asked<'_>) -> Result<Verdict, Refusal> {
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

/// The beginning of a body for a message.
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
