//! Budgets of admission reviews and of the registry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

use super::consistent::Consistent;

/// Limits on admission reviews. `wrongVerdicts` is 0 whenever this section is present and reviews are sent.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Admission {
    /// The median of the response time from the planned start, in the steady phase.
    pub p50: Option<Span>,
    /// The 99th percentile of the response time from the planned start, in the steady phase.
    pub p99: Option<Span>,
    /// The 99.9th percentile of the response time from the planned start, in the steady phase.
    pub p999: Option<Span>,
    /// Answers whose verdict or patch differs from the correct one. Default 0.
    pub wrong_verdicts: Option<u64>,
    /// Reviews without a valid answer: HTTP error, timeout, failed connection, failed TLS handshake, invalid response.
    /// Absent: not judged.
    pub errors: Option<u64>,
    /// Stored objects with an image without a digest, whatever the reason. Needs load through the API server. Absent:
    /// not judged.
    pub unpinned: Option<u64>,
    /// Answers that pin a locked image to another digest than the locked one. Needs `registry.lock`. Absent: not judged.
    pub unlocked: Option<u64>,
    /// Answers to the same question that differ without a reason. Absent: not judged.
    pub consistent: Option<Consistent>,
}

impl Admission {
    /// Whether the section has no limit on the reviews of the run.
    pub fn is_only_consistent(&self) -> bool {
        self.consistent.is_some() && *self == Self { consistent: self.consistent.clone(), ..Self::default() }
    }
}

/// Limits on requests to the registry, and on reviews that are refused while the registry is faulty.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Registry {
    /// Requests to the registry in the whole run, including those for tokens.
    pub requests: Option<u64>,
    /// Requests for the manifest of any one tag in the whole run.
    pub requests_per_image: Option<u64>,
    /// Reviews that were refused only because the registry was faulty. A cached image needs no refusal.
    pub unavailable: Option<u64>,
    /// How long after a tag moved an answer may give the old digest. A later answer counts in
    /// `admission.wrongVerdicts`. Absent: no limit.
    pub staleness: Option<Span>,
}
