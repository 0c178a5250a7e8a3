//! Failures between this client and the API server.
//!
//! Owns the reading of a refusal. It must not decide what follows from it.

use std::time::Duration;

use serde_json::Value;

/// The longest `Retry-After` that is followed.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// The reason why a request has no usable answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Trouble {
    /// There is no connection, or the handshake failed.
    #[error("failed to connect: {0}")]
    Connect(String),
    /// The head or a part of the body did not come in time.
    #[error("no answer in time")]
    NoAnswer,
    #[error("the connection broke: {0}")]
    Broke(String),
    /// One HTTP/2 stream was reset; its connection goes on.
    #[error("the stream was reset: {0}")]
    Reset(String),
    /// The bytes are no Kubernetes answer.
    #[error("the answer makes no sense: {0}")]
    Malformed(String),
    #[error("the server answered {} {}: {}", .0.code, .0.reason, .0.message)]
    Refused(Refusal),
    /// A list is older than the seen state.
    #[error("the list is of revision {listed}, and {seen} was seen already")]
    Stale {
        /// Revision of the list.
        listed: String,
        /// The newest revision that was seen.
        seen: String,
    },
}

/// A `Status` that refuses, as an HTTP error or in a stream.
#[derive(Debug, Clone, Default)]
pub struct Refusal {
    /// The HTTP status, or the `code` of a `Status` in a stream.
    pub code: u16,
    /// The reason as one word.
    pub reason: String,
    /// The reason as text.
    pub message: String,
    /// The server's `Retry-After`.
    pub retry_after: Duration,
    /// Whether the requested revision is newer than this server's.
    pub too_large: bool,
}

impl Refusal {
    /// Reads a `Status`, or the answer of a proxy in its place.
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

    /// Whether the requested history is gone.
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

    /// Whether the requested revision is newer than this server's.
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
