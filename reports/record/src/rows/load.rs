//! The rows of admission load, API calls, alerts and churn in an interval, and the quantiles of their latencies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::hlog::{self, Histogram};

/// Calls of one registered webhook, as counted by the control plane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookRow {
    /// The webhook's name.
    pub name: String,
    /// How often the control plane called the webhook.
    pub calls: u64,
    /// How often the webhook refused the request, or gave no valid answer.
    pub rejected: u64,
}

/// Requests of the subject that the control plane refused because the subject lacks a right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// The refused request, such as `list networkpolicies of networking.k8s.io`.
    pub what: String,
    /// How often the control plane refused the request.
    pub times: u64,
}

/// A few quantiles of a distribution. A percentile has a value only if at least 100 samples lie beyond it.
#[serde_with::apply(
    u64 => #[serde(skip_serializing_if = "super::is_zero")],
    Option => #[serde(skip_serializing_if = "Option::is_none")],
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Quantiles {
    /// The number of samples.
    pub count: u64,
    /// Median, in microseconds.
    pub p50_us: Option<u64>,
    /// 90th percentile, in microseconds.
    pub p90_us: Option<u64>,
    /// 99th percentile, in microseconds.
    pub p99_us: Option<u64>,
    /// 99.9th percentile, in microseconds.
    pub p999_us: Option<u64>,
    /// The largest sample, in microseconds.
    pub max_us: u64,
}

/// Calls to the subject's API that scales Deployments in one interval.
#[serde_with::apply(
    u64 => #[serde(skip_serializing_if = "super::is_zero")],
    Option => #[serde(skip_serializing_if = "Option::is_none")],
)]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CallsRow {
    /// Calls that the schedule planned.
    pub planned: u64,
    /// Calls that the generator made.
    pub sent: u64,
    /// Planned calls that were not made, because too many were in flight.
    pub overflow: u64,
    /// Calls that read replica counts or lists.
    pub read: u64,
    /// Calls that set replica counts.
    pub set: u64,
    /// Permitted calls that were not answered with success.
    pub errors: u64,
    /// Replica counts that the harness set directly in the control plane, past the subject.
    pub by_others: u64,
    /// Direct changes of replica counts that the control plane refused.
    pub others_failed: u64,
    /// Calls without permission that the subject refused.
    pub turned_away: u64,
    /// Calls without permission that the subject accepted.
    pub let_in: u64,
    /// Calls without permission that got no answer: no connection was made, or the timeout passed.
    pub unanswered: u64,
    /// Answers that were compared with the commits: with a replica count, or denying that the Deployment exists.
    pub judged: u64,
    /// Compared answers with a value that was never committed.
    pub wrong: u64,
    /// Replica counts that the subject confirmed as set although they were never set.
    pub lost: u64,
    /// Answers that could not be compared with the commits.
    pub unjudged: u64,
    /// Response time of calls that read, from the planned start.
    pub response: Option<Quantiles>,
    /// Response time of calls that write, from the planned start.
    pub set_response: Option<Quantiles>,
    /// How much later than planned the generator started calls.
    pub lateness: Option<Quantiles>,
    /// The age of the replica counts in answers: from the commit that replaced the count to the call.
    pub staleness: Option<Quantiles>,
    /// Texts of some errors and wrong answers, at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Admission load of one interval.
#[serde_with::apply(
    u64 => #[serde(skip_serializing_if = "super::is_zero")],
    Option => #[serde(skip_serializing_if = "Option::is_none")],
)]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdmissionRow {
    /// Reviews that the schedule planned.
    pub planned: u64,
    /// Reviews that the generator sent.
    pub sent: u64,
    /// Planned reviews that were not sent, because too many were in flight.
    pub overflow: u64,
    /// Answers that allowed the request.
    pub allowed: u64,
    /// Answers that denied the request.
    pub denied: u64,
    /// Answers with an HTTP status other than 200.
    pub http_error: u64,
    /// Reviews without an answer before the timeout.
    pub timeout: u64,
    /// Reviews for which no connection could be made.
    pub connect: u64,
    /// Reviews for which the TLS handshake failed.
    pub tls: u64,
    /// Answers that kube-apiserver would refuse as invalid.
    pub invalid_response: u64,
    /// Reviews that were sent again, because the server had certainly not processed them.
    pub sent_again: u64,
    /// Denials that are correct only because the registry was faulty, including HTTP 500 in answer to an UPDATE.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    #[serde_with(skip_apply)]
    pub unavailable: u64,
    /// Valid answers whose verdict or patch differs from the correct one.
    pub wrong_verdicts: u64,
    /// Wrong answers that allowed an object that the policy denies.
    pub wrong_allows: u64,
    /// Admissions with a locked image whose tag now has another digest.
    pub moved: u64,
    /// Admissions with such a moved tag that pin the image to another digest than the locked one.
    pub unlocked: u64,
    /// Response time from the planned start, of all outcomes.
    pub response: Option<Quantiles>,
    /// Service time from the real start.
    pub service: Option<Quantiles>,
    /// How much later than planned the generator started reviews.
    pub lateness: Option<Quantiles>,
    /// Up to 5 error texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The objects that the control plane stored, if the load goes through the control plane.
    pub stored: Option<StoredRow>,
}

/// Admission objects that the control plane stored in one interval, as a watch of the harness saw them.
#[serde_with::apply(u64 => #[serde(skip_serializing_if = "super::is_zero")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredRow {
    /// Stored versions of objects with images.
    pub versions: u64,
    /// Objects that became unpinned: stored with an image that has no digest.
    pub unpinned: u64,
    /// Up to 5 unpinned objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Alerts in one interval: those that the answers to the load require, and those that the harness received.
#[serde_with::apply(u64 => #[serde(skip_serializing_if = "super::is_zero")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AlertsRow {
    /// Answers for which the subject must send an alert.
    pub decided: u64,
    /// Answers to dry runs, for which the subject must not send an alert.
    pub dry_runs: u64,
    /// Alerts that the receiver got.
    pub told: u64,
    /// Answers without an alert in time, or with an incorrect one.
    pub lost: u64,
    /// Superfluous alerts: a repeated alert for one answer, or an alert for a review that was never sent.
    pub twice: u64,
    /// Alerts of dry runs.
    pub on_dry_run: u64,
    /// Texts of some lost or superfluous alerts, at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Object churn of one interval.
#[serde_with::apply(u64 => #[serde(skip_serializing_if = "super::is_zero")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChurnRow {
    /// Changes that the schedule planned.
    pub planned: u64,
    /// Number of objects created.
    pub created: u64,
    /// Number of objects updated.
    pub updated: u64,
    /// Number of objects deleted.
    pub deleted: u64,
    /// Changes that a webhook refused, correctly or not.
    pub refused: u64,
    /// Changes that the control plane itself refused.
    pub failed: u64,
    /// How much later than planned the generator started changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Quantiles>,
    /// Distinct objects that were created since the start of the run.
    pub objects_total: u64,
}

/// Number of samples that must lie beyond a percentile before the percentile has a value.
pub const SAMPLES_BEYOND: u64 = 100;

impl Quantiles {
    /// The quantiles of a histogram whose values are microseconds.
    pub fn of(histogram: &Histogram) -> Self {
        let at = |parts_per_thousand: u64| quantile_us(histogram, parts_per_thousand);
        Self {
            count: histogram.len(),
            p50_us: at(500),
            p90_us: at(900),
            p99_us: at(990),
            p999_us: at(999),
            max_us: if histogram.is_empty() { 0 } else { histogram.max() },
        }
    }

    pub fn of_any(histogram: &Histogram) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self::of(histogram))
    }
}

/// The number of samples that a quantile, in parts per thousand, needs before it has a value.
pub fn samples_needed(parts_per_thousand: u64) -> u64 {
    (SAMPLES_BEYOND * 1000).div_ceil(1000 - parts_per_thousand.min(999))
}

/// A quantile in microseconds, or none if fewer than [`SAMPLES_BEYOND`] samples lie beyond it.
pub fn quantile_us(histogram: &Histogram, parts_per_thousand: u64) -> Option<u64> {
    (histogram.len() >= samples_needed(parts_per_thousand))
        .then(|| hlog::value_at(histogram, parts_per_thousand as f64 / 1000.0))
}

impl AdmissionRow {
    /// Reviews without a valid answer.
    pub fn errors(&self) -> u64 {
        self.http_error + self.timeout + self.connect + self.tls + self.invalid_response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A percentile has a value only with at least 100 samples beyond it.
    #[test]
    fn percentiles_need_samples_beyond_them() {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record_n(500, 9_999).unwrap();
        assert_eq!((Quantiles::of(&histogram).p90_us, Quantiles::of(&histogram).p99_us), (Some(500), None));
        histogram.record(900).unwrap();
        let points = Quantiles::of(&histogram);
        assert_eq!((points.p99_us, points.p999_us, points.max_us), (Some(500), None, 900));
        assert_eq!((samples_needed(500), samples_needed(990), samples_needed(999)), (200, 10_000, 100_000));
    }
}
