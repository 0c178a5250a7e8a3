//! The Status object, with which the API server says why it did not do what it was asked.
//!
//! Pure.

use serde::Deserialize;

/// A Status object as far as it decides anything.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    code: u16,
    reason: String,
    message: String,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Vec<Cause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
}

impl Status {
    /// Reads the body of an answer that is not success; whatever is no Status is an empty one.
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// The status code, 0 when there is none.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// Seconds that the server asks to wait.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.details.as_ref().and_then(|details| details.retry_after_seconds)
    }

    /// Whether the version asked for is out of history.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(&*self.reason, "Expired" | "Gone")
    }

    /// The message, for people.
    pub fn message(&self) -> Option<&str> {
        Some(&*self.message).filter(|text| !text.is_empty())
    }

    /// Whether the server says that it has not reached the version asked for. Servers before 1.19 say it in words only
    /// (kubernetes/kubernetes#94315).
    pub fn is_ahead(&self) -> bool {
        let causes = self.details.iter().flat_map(|details| &details.causes);
        causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || self.message.starts_with("Too large resource version")
    }
}
