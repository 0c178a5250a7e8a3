//! The Status object, in which the API server explains a refusal.
//!
//! Pure.

use serde::Deserialize;

/// A Status object, as far as its fields decide anything.
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
    /// Reads the body of an answer other than success; any other content gives an empty Status.
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// The status code; 0 if there is none.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// Seconds after which the server asks to retry.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.details.as_ref().and_then(|details| details.retry_after_seconds)
    }

    /// Whether the requested version is out of history.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(&*self.reason, "Expired" | "Gone")
    }

    pub fn message(&self) -> Option<&str> {
        Some(&*self.message).filter(|text| !text.is_empty())
    }

    /// Whether the server reports that it has not reached the requested version. Servers before 1.19 report it only in
    /// the message (kubernetes/kubernetes#94315).
    pub fn is_ahead(&self) -> bool {
        let causes = self.details.iter().flat_map(|details| &details.causes);
        causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || self.message.starts_with("Too large resource version")
    }
}
