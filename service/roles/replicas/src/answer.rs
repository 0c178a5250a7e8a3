//! Answers of the API that scales Deployments: JSON with headers about the cache's state, and errors as `{"error":
//! text}`.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use serde::Serialize;
use service_core::edge::Answer;

/// Header: `metadata.resourceVersion` of the Deployment in the answer.
pub const REVISION: HeaderName = HeaderName::from_static("longhaul-revision");
/// Header: the resource version up to which the cache is complete.
pub const CACHE_REVISION: HeaderName = HeaderName::from_static("longhaul-cache-revision");
/// Header: milliseconds since the cache last received data from the API server.
pub const CACHE_AGE: HeaderName = HeaderName::from_static("longhaul-cache-age-ms");
/// Header: the cursor of the next page of a list; absent on the last page.
pub const CONTINUE: HeaderName = HeaderName::from_static("longhaul-continue");
/// Header: the id of one call, which the logs show too.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An answer of the API other than success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub text: String,
    /// Time after which the caller may retry.
    pub retry_after: Option<Duration>,
    /// The allowed methods of the path, if the request had another method.
    pub allow: Option<&'static str>,
    /// Whether the connection must be closed after the answer.
    pub closes: bool,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
}

impl Refusal {
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), retry_after: None, allow: None, closes: false }
    }

    pub fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// Adds to the answer that the caller may retry after `wait`.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    pub fn answer(&self) -> Answer {
        let mut answer = json(self.status, &ErrorBody { error: &self.text });
        let headers = answer.headers_mut();
        if let Some(wait) = self.retry_after {
            // Whole seconds, rounded up and never 0: an earlier call would fail again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, seconds.max(1).into());
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        answer
    }
}

pub fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    text(status, serde_json::to_vec(body).expect("strings and numbers always serialise"))
}

pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Sets `header` to `value`, unless the value has bytes that no header may have.
pub fn put(answer: &mut Answer, header: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(header, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_given_in_whole_seconds_and_never_as_none() {
        for (wait_ms, header_s) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (60_000, "60")] {
            let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "x").after(Duration::from_millis(wait_ms));
            assert_eq!(refusal.answer().headers()[header::RETRY_AFTER], header_s, "{wait_ms}");
        }
    }
}
