//! Budgets of admission reviews and of the registry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// Limits on admission reviews. `wrongVerdicts` is 0 whenever this section is present.
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
    /// Answers that differ from the right one in verdict or patch. Default 0.
    pub wrong_verdicts: Option<u64>,
    /// Reviews without a valid answer: HTTP error, timeout, connect, TLS, invalid response. Absent: not judged.
    pub errors: Option<u64>,
    /// Stored objects with an image without a digest, for any reason. Needs load through the API server. Absent: not judged.
    pub unpinned: Option<u64>,
    /// Answers that pin a locked image to another digest than the locked one. Needs `registry.lock`. Absent: not judged.
    pub unlocked: Option<u64>,
}

/// Limits on requests to the registry, and on refused reviews while it is sick.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Registry {
    /// Requests in the whole run, tokens included.
    pub requests: Option<u64>,
    /// Requests for the manifest of any one tag in the whole run.
    pub requests_per_image: Option<u64>,
    /// Reviews that were refused only because the registry was sick. A cached image needs no refusal.
    pub unavailable: Option<u64>,
    /// How long after a tag moved an answer may give the old digest; later it is in `admission.wrongVerdicts`. Absent: no limit.
    pub staleness: Option<Span>,
}
