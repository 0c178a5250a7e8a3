//! Which answers of a webhook kube-apiserver believes, and what it reads in them.
//!
//! Who plays an API server and who judges a webhook decide alike because both ask here. The rules are those of k8s.io/apiserver v0.34.1
//! (`VerifyAdmissionResponse`, the mutating dispatcher) and of what it reads answers with: client-go's REST client, which asks neither for
//! a media type nor for a certain 2xx, and the decoder of Go's JSON, which lets pass what serde refuses and the other way round. Pure: no
//! connection, no clock.
//!
//! Two things are narrower: protobuf is not read, which nobody answers who was asked for JSON, and a redirect is not followed.

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

/// The 2xx that client-go believes.
const BELIEVED: std::ops::RangeInclusive<u16> = 200..=206;

/// An answer, unpacked if it was compressed.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The status of HTTP.
    pub status: u16,
    /// The first `Content-Type`, if there is one.
    pub content_type: Option<&'a [u8]>,
    /// The whole body.
    pub body: &'a [u8],
}

/// What an answer is held against.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The uid of the request.
    pub uid: &'a [u8],
    /// Whether the webhook may change the object.
    pub mutating: bool,
    /// The version of the review that it was sent.
    pub version: Version,
}

/// The two forms of a review: the same fields, and other demands on the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`.
    V1Beta1,
}

/// What a webhook said.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Nothing said is a no.
    pub allowed: bool,
    /// What to change; never an empty one, and none of a denial.
    pub patch: Option<Patch>,
    /// The code of a denial's status; 0 where it says none.
    pub code: i32,
    /// Its reason, such as `Forbidden`.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// For the client.
    pub warnings: Vec<String>,
}

/// Why an answer is no verdict, where there is one in the real server's words.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A status that is no success.
    #[error("HTTP {status}: {body}")]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// No body.
    #[error("0-length response with status code: {status} and content type: {content_type}")]
    Empty {
        /// The status.
        status: u16,
        /// The media type.
        content_type: String,
    },
    /// A `Content-Type` that Go cannot read. Which one it is does not matter.
    #[error("the Content-Type is `{content_type}`, which cannot be read: {why}")]
    MediaType {
        /// As it was sent.
        content_type: String,
        /// What is wrong about it.
        why: media::Problem,
    },
    /// Neither JSON nor YAML of a review.
    #[error("the body is no AdmissionReview ({why}): {body}")]
    Undecodable {
        /// What is wrong about it.
        why: String,
        /// Its beginning.
        body: String,
    },
    /// A review without an answer.
    #[error("webhook response was absent")]
    Absent,
    /// The answer to something else.
    #[error("expected response.uid=\"{expected}\", got \"{got}\"")]
    Uid {
        /// What was asked.
        expected: String,
        /// What was answered.
        got: String,
    },
    /// It is something else.
    #[error("expected webhook response of {expected}, Kind=AdmissionReview, got {api_version}, Kind={kind}")]
    Type {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
        /// The `apiVersion` that it has to have.
        expected: &'static str,
    },
    /// A patch, or its type, of one that may only validate.
    #[error("validating webhook may not return response.{0}")]
    Validating(&'static str),
    /// A patch without its type, or a type without a patch.
    #[error("webhook returned response.{has} but not response.{lacks}")]
    Half {
        /// What it has.
        has: &'static str,
        /// What it lacks.
        lacks: &'static str,
    },
    /// A patch whose type is empty.
    #[error("webhook returned invalid response.patchType of \"{0}\"")]
    PatchType(String),
    /// A patch of a type that does not exist.
    #[error("unsupported patch type \"{0}\"")]
    Patch(String),
    /// A patch that is none.
    #[error("received undecodable patch in webhook response: {0}")]
    NoPatch(String),
}

impl Version {
    /// `v1` or `v1beta1`.
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

/// What the answer says.
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
