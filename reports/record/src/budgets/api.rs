//! Budgets of an API over Deployments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// Limits on an API over Deployments. With this section, wrong answers, lost counts and unauthorised calls default to
/// 0.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Api {
    /// Answers with a count that was never committed, or that deny an existing Deployment. Default 0.
    pub wrong: Option<u64>,
    /// Counts that were confirmed as set and never were. Default 0.
    pub lost: Option<u64>,
    /// The age of the oldest count in an answer: from the commit that replaced it to the question. The time of a fault that keeps the
    /// subject from learning is included. Absent: not judged.
    pub staleness: Option<Span>,
    /// Calls that were answered although their certificate was revoked, expired, not valid yet, not for clients, of
    /// another authority, or missing. Default 0.
    pub let_in: Option<u64>,
    /// Permitted calls that were not answered with success. Absent: not judged.
    pub errors: Option<u64>,
    /// The median of the time of reads from the planned start, in the steady phase.
    pub p50: Option<Span>,
    /// The 99th percentile of the time of reads from the planned start, in the steady phase.
    pub p99: Option<Span>,
}
