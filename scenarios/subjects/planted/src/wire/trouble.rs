//! Failures between this client and the API server.
//!
//! Other modules decide how the client reacts to a failure.

use std::time::Duration;

use serde_json::Value;

/// The longest `Retry-After` that the client obeys.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// The reason why a request got no usable answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Trouble {
    /// The connection could not be opened, or the handshake failed.
    #[error("failed to connect: {0}")]
    Connect(String),
    /// The head or a chunk of the body did not arrive in time.
    #[error("no answer in time")]
    NoAnswer,
    #[error("the connection broke: {0}")]
    Broke(String),
    /// One HTTP/2 stream was reset, but its connection can still be used.
    #[error("the stream was reset: {0}")]
    Reset(String),
    /// The bytes are not an answer of the Kubernetes API.
    #[error("the answer makes no sense: {0}")]
    Malformed(String),
    #[error("the server answered {} {}: {}", .0.code, .0.reason, .0.message)]
    Refused(Refusal),
    /// A list is older than the state that the client has already seen.
    #[error("the list is of revision {listed}, and {seen} was seen already")]
    Stale {
        /// Revision of the list.
        listed: String,
        /// The newest revision that the client has seen.
        seen: String,
    },
}

/// A `Status` that refuses a request, as an HTTP error or as an event of a watch.
#[derive(Debug, Clone, Default)]
pub struct Refusal {
    /// The HTTP status code, or the `code` of a `Status` in a watch.
    pub code: u16,
    /// The reason in one word, such as `Expired`.
    pub reason: String,
    /// The reason as text.
    pub message: String,
    /// The wait that the header `Retry-After` of the refusal states.
    pub retry_after: Duration,
    /// Whether the requested revision is newer than the state of the server that answered.
    pub too_large: bool,
}

impl Refusal {
    /// Parses a `Status`, or the answer that a proxy sent instead.
    pub fn new(code: u16, retry_after: Duration, status: &Value) -> Self {
        let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        let message = text("message");
        // Newer servers name the cause; older ones only mention it in the text.
        let causes = status["details"]["causes"].as_array().into_iter().flatten();
        let too_large = causes.filter_map(|cause| cause["reason"].as_str()).any(|why| why == "ResourceVersionTooLarge")
            || message.contains("Too large resource version");
        let code = status["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(code);
        let asked = status["details"]["retryAfterSeconds"].as_u64().map_or(Duration::ZERO, Duration::from_secs);
        Self {
            code,
            reason: text("reason"),
            message,
            retry_after: retry_after.max(asked).min(RETRY_AFTER_MAX),
            too_large,
        }
    }

    /// Whether the history after the requested revision is gone (410).
    pub fn is_gone(&self) -> bool {
        self.code == 410
    }
}

impl Trouble {
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    pub fn code(&self) -> Option<u16> {
        self.refusal().map(|refusal| refusal.code)
    }

    /// Whether the requested revision is newer than the state of this server.
    pub fn is_too_large(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.too_large)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_of_too_large_are_read() {
        let new = json!({"code": 504, "reason": "Timeout", "details": {
            "causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1}});
        let refusal = Refusal::new(504, Duration::ZERO, &new);
        assert!(refusal.too_large);
        // The number is too large for any clock.
        let far = json!({"code": 429, "details": {"retryAfterSeconds": u64::MAX}});
        assert_eq!(Refusal::new(429, Duration::ZERO, &far).retry_after, RETRY_AFTER_MAX);
        assert_eq!(refusal.retry_after, Duration::from_secs(1));
        let old = json!({"code": 504, "message": "Too large resource version: 9, current: 5"});
        assert!(Refusal::new(504, Duration::ZERO, &old).too_large);
        assert!(!Refusal::new(504, Duration::ZERO, &Value::Null).too_large);
    }
}
