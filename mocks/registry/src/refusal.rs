//! The registry's refusals: the error codes of the OCI distribution specification and their JSON.
//!
//! Owns the error codes, their HTTP status and their messages; the module does not know requests. The specification
//! fixes the codes (spec.md, "Error Codes") and only some statuses. For all other codes the status is that of the
//! registry `distribution`, because clients were written for it.

use std::borrow::Cow;

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::body::Body;

/// An error code of the specification, or one of the two codes that `distribution` adds for ranges and paging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    BlobUnknown,
    BlobUploadInvalid,
    BlobUploadUnknown,
    DigestInvalid,
    ManifestBlobUnknown,
    ManifestInvalid,
    ManifestUnknown,
    NameInvalid,
    NameUnknown,
    SizeInvalid,
    Unauthorized,
    Denied,
    Unsupported,
    TooManyRequests,
    RangeInvalid,
    PaginationNumberInvalid,
    Unavailable,
}

/// One refusal: its code, message and headers.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) code: Code,
    message: Cow<'static, str>,
    detail: Value,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Code {
    const fn facts(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Self::BlobUnknown => ("BLOB_UNKNOWN", StatusCode::NOT_FOUND, "blob unknown to registry"),
            Self::BlobUploadInvalid => ("BLOB_UPLOAD_INVALID", StatusCode::NOT_FOUND, "blob upload invalid"),
            Self::BlobUploadUnknown => {
                ("BLOB_UPLOAD_UNKNOWN", StatusCode::NOT_FOUND, "blob upload unknown to registry")
            }
            Self::DigestInvalid => {
                ("DIGEST_INVALID", StatusCode::BAD_REQUEST, "provided digest did not match uploaded content")
            }
            Self::ManifestBlobUnknown => {
                ("MANIFEST_BLOB_UNKNOWN", StatusCode::BAD_REQUEST, "manifest references content unknown to registry")
            }
            Self::ManifestInvalid => ("MANIFEST_INVALID", StatusCode::BAD_REQUEST, "manifest invalid"),
            Self::ManifestUnknown => ("MANIFEST_UNKNOWN", StatusCode::NOT_FOUND, "manifest unknown"),
            Self::NameInvalid => ("NAME_INVALID", StatusCode::NOT_FOUND, "invalid repository name or reference"),
            Self::NameUnknown => ("NAME_UNKNOWN", StatusCode::NOT_FOUND, "repository name not known to registry"),
            Self::SizeInvalid => {
                ("SIZE_INVALID", StatusCode::BAD_REQUEST, "provided length did not match content length")
            }
            Self::Unauthorized => ("UNAUTHORIZED", StatusCode::UNAUTHORIZED, "authentication required"),
            Self::Denied => ("DENIED", StatusCode::FORBIDDEN, "requested access to the resource is denied"),
            Self::Unsupported => ("UNSUPPORTED", StatusCode::METHOD_NOT_ALLOWED, "the operation is unsupported"),
            Self::TooManyRequests => ("TOOMANYREQUESTS", StatusCode::TOO_MANY_REQUESTS, "too many requests"),
            Self::RangeInvalid => ("RANGE_INVALID", StatusCode::RANGE_NOT_SATISFIABLE, "invalid content range"),
            Self::PaginationNumberInvalid => {
                ("PAGINATION_NUMBER_INVALID", StatusCode::BAD_REQUEST, "invalid number of results requested")
            }
            Self::Unavailable => ("UNAVAILABLE", StatusCode::SERVICE_UNAVAILABLE, "service unavailable"),
        }
    }
}

impl Refusal {
    pub(super) const fn new(code: Code) -> Self {
        let (_, status, message) = code.facts();
        Self { status, code, message: Cow::Borrowed(message), detail: Value::Null, headers: Vec::new() }
    }

    pub(super) fn detail(mut self, detail: impl Into<Value>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(super) fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = message.into();
        self
    }

    pub(super) const fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a header to the answer; an invalid value (a control character that a client sent) is left out.
    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let (code, _, _) = self.code.facts();
        let mut error = json!({ "code": code, "message": self.message });
        if !self.detail.is_null() {
            error["detail"] = self.detail;
        }
        let mut response = Response::new(Body::full(json!({ "errors": [error] }).to_string()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}
