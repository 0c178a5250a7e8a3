//! The Status object in which the API server explains an error.

use serde::Deserialize;

/// The fields of a Status object that this service uses.
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
    /// Parses the body of an error answer; a body that is no Status object gives an empty Status.
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// The status code; 0 if the Status object has none.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// Seconds after which the server allows a retry.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.details.as_ref().and_then(|details| details.retry_after_seconds)
    }

    /// Whether the server no longer has the requested resource version (410).
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(&*self.reason, "Expired" | "Gone")
    }

    pub fn message(&self) -> Option<&str> {
        Some(&*self.message).filter(|text| !text.is_empty())
    }

    /// Whether the server says that it has not reached the requested resource version. Before Kubernetes 1.19, only the
    /// message says this (kubernetes/kubernetes#94315).
    pub fn is_ahead(&self) -> bool {
        let causes = self.details.iter().flat_map(|details| &details.causes);
        causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || self.message.starts_with("Too large resource version")
    }
}
