//! Budgets for the subject's API that scales Deployments, which reads and sets replica counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// Limits on the subject's API that scales Deployments. With this section, `wrong`, `lost` and `letIn` default to 0.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Api {
    /// Answers with a replica count that was never committed, or that deny an existing Deployment. Default 0.
    pub wrong: Option<u64>,
    /// Replica counts that the subject confirmed as set although they were never set. Default 0.
    pub lost: Option<u64>,
    /// The largest age of a replica count in an answer: the time from the commit that replaced the count to the call.
    /// Faults that delay the subject's watch are included in the age. Absent: not judged.
    pub staleness: Option<Span>,
    /// Calls that succeeded although their certificate was missing, revoked, expired, not valid yet, not for clients,
    /// or from another authority. Default 0.
    pub let_in: Option<u64>,
    /// Permitted calls that were not answered with success. Absent: not judged.
    pub errors: Option<u64>,
    /// The median of the time of reads from the planned start, in the steady phase.
    pub p50: Option<Span>,
    /// The 99th percentile of the time of reads from the planned start, in the steady phase.
    pub p99: Option<Span>,
}
