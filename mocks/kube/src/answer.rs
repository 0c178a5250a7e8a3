//! The answer to a request, before it becomes an HTTP response.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use mock_objects::openapi::{self, Document};
use mock_objects::status::Failure;
use mock_store::ordered::Ordered;
use serde_json::Value;

use super::audit::{About, Said};
use super::body::Body;

/// An answer to a request; its `warnings` become `Warning` headers.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub body: Body,
    pub warnings: Vec<String>,
    pub retry_after_s: Option<u64>,
    pub other_content_type: Option<String>,
    /// Whether the headers of the response are sent only with the first bytes of the body.
    pub holds_head: bool,
    /// Whether the answer is an accepted watch, even a very short one; if the client asked for a WebSocket, the watch
    /// uses one.
    pub streams: bool,
    /// Numbers about the answer, for the audit.
    pub about: About,
    /// Texts of the answer, for the audit.
    pub said: Option<Arc<Said>>,
}

impl Answer {
    pub fn json(status: StatusCode, body: Bytes) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: body.into(),
            warnings: Vec::new(),
            retry_after_s: None,
            other_content_type: None,
            holds_head: false,
            streams: false,
            about: About::default(),
            said: None,
        }
    }

    /// Sets the revision of the object in the answer, for the audit.
    pub fn of(self, revision: u64) -> Self {
        Self { about: About { revision: Some(revision), ..self.about }, ..self }
    }

    pub fn value(status: StatusCode, value: &Value) -> Self {
        Self::json(status, Bytes::from(Ordered(value).to_bytes()))
    }

    /// An answer with the status 200 and a stream that ends at once.
    pub fn nothing() -> Self {
        Self { body: Body::Nothing, ..Self::json(StatusCode::OK, Bytes::new()) }
    }

    pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::json(status, text.into()) }
    }
}

impl From<Document> for Answer {
    fn from(document: Document) -> Self {
        match document {
            Document::Json(value) => Self::value(StatusCode::OK, &value),
            Document::Protobuf(bytes) => {
                let json = Self::json(StatusCode::OK, Bytes::from_static(bytes));
                Self { content_type: openapi::V2_MEDIA_TYPE, ..json }
            }
        }
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        let name = failure.details.as_ref().and_then(|details| details["name"].as_str()).unwrap_or_default();
        let said = Some(Said::refused(name, &failure.message));
        if failure.is_plain_text() {
            return Self { said, ..Self::text(failure.code, failure.message) };
        }
        let mut answer = Self::value(failure.code, &failure.to_value());
        answer.retry_after_s = failure.retry_after_s;
        answer.said = said;
        answer
    }
}
