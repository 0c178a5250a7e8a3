//! The result of a measurement as one JSON object with a versioned schema. Does no I/O.

use loadgen::admission::{Counts, Interval, Slow};
use reports::judge::{Finding, Verdict};
use reports::record::Quantiles;
use schemars::JsonSchema;
use serde::Serialize;

use super::limits;
use super::measure::{Ended, Measured};
use super::pressure::Pressure;

/// The name and version of the JSON format.
pub(crate) const SCHEMA: &str = "longhaul-load/v1";

/// The planned load, the measurement, and the findings about its limits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) schema: &'static str,
    pub(crate) url: String,
    /// The distribution of requests over time, as text.
    pub(crate) schedule: String,
    pub(crate) client: String,
    pub(crate) seed: u64,
    /// SHA-256 over payloads and arrivals: equal fingerprints mean equal load.
    pub(crate) fingerprint: String,
    /// Number of sending processes.
    pub(crate) workers: usize,
    /// Time from the first planned request until the last planned request was handled.
    pub(crate) lasted_ms: u64,
    pub(crate) numbers: Numbers,
    /// The load on the generator's machine during the measurement.
    pub(crate) machine: Pressure,
    pub(crate) verdict: Verdict,
    pub(crate) exit_code: u8,
    pub(crate) findings: Vec<Finding>,
}

/// Counts of requests, and distributions of their times. All times are in microseconds.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Numbers {
    /// Number of requests by outcome. The right answers of the webhook are not known, so no answer counts as wrong.
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// `sent / planned`; below 0.99 the measurement is invalid.
    pub(crate) sent_share: f64,
    /// Time from the planned start to the end of the answer or the failure, for all outcomes.
    pub(crate) response: Option<Quantiles>,
    pub(crate) response_allowed: Option<Quantiles>,
    pub(crate) response_denied: Option<Quantiles>,
    pub(crate) response_error: Option<Quantiles>,
    /// Time from the actual start of the call to its end.
    pub(crate) service: Option<Quantiles>,
    /// Time from the planned to the actual start of the call: the delay of the generator.
    pub(crate) lateness: Option<Quantiles>,
    /// The slowest calls with the time of each phase, slowest first.
    pub(crate) slowest: Vec<Slowest>,
    /// Up to five error texts.
    pub(crate) examples: Vec<String>,
}

/// A slow call. All times are in microseconds.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Slowest {
    pub(crate) label: String,
    pub(crate) outcome: &'static str,
    pub(crate) response_us: u64,
    /// Wait for a free connection.
    pub(crate) queue_us: u64,
    /// Time of new TCP and TLS handshakes, if the call needed them.
    pub(crate) connect_us: u64,
    pub(crate) tls_us: u64,
    /// Time from the request to the first byte of the answer.
    pub(crate) wait_us: u64,
    pub(crate) body_us: u64,
}

impl Slowest {
    fn of(slow: &Slow) -> Self {
        let us = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let phases = &slow.phases;
        Self {
            label: slow.label.clone(),
            outcome: slow.outcome.text(),
            response_us: us(phases.response()),
            queue_us: us(phases.queue),
            connect_us: us(phases.connect),
            tls_us: us(phases.tls),
            wait_us: us(phases.wait),
            body_us: us(phases.body),
        }
    }
}

impl Numbers {
    pub(crate) fn of(total: &Interval) -> Self {
        Self {
            counts: total.counts,
            sent_share: limits::sent_share(total),
            response: Quantiles::of_any(&total.response()),
            response_allowed: Quantiles::of_any(&total.response_allowed),
            response_denied: Quantiles::of_any(&total.response_denied),
            response_error: Quantiles::of_any(&total.response_error),
            service: Quantiles::of_any(&total.service),
            lateness: Quantiles::of_any(&total.lateness),
            slowest: total.slowest.iter().map(Slowest::of).collect(),
            examples: total.examples.clone(),
        }
    }
}

/// All findings about a measurement: first whether the measurement is valid, then each limit. `log_ended` is the reason
/// for an incomplete log.
pub(crate) fn findings(measured: &Measured, limits: &limits::Limits, log_ended: Option<&str>) -> Vec<Finding> {
    let finding = |budget: &str, verdict, text: String| Finding {
        judge: "validity".to_owned(),
        budget: budget.to_owned(),
        verdict,
        observed: String::new(),
        limit: String::new(),
        text,
        used_pct: None,
    };
    let invalid = |text: String| vec![finding("run.whole", Verdict::Invalid, text)];
    let mut findings = match &measured.ended {
        Ended::Whole => Vec::new(),
        Ended::Interrupted(signal) => {
            invalid(format!("{signal} ended the run early: the numbers cover the requests until then"))
        }
        Ended::Broken(why) => invalid(why.clone()),
        Ended::Lost(why) => {
            let text = format!("{why}: the numbers cover only the requests of the other workers, fewer than planned");
            vec![finding("run.whole", Verdict::Inconclusive, text)]
        }
    };
    // This is not "invalid", which would hide a broken limit.
    let incomplete =
        |why: &str| finding("run.log", Verdict::Inconclusive, format!("{why}; the numbers here are complete"));
    findings.extend(log_ended.map(incomplete));
    findings.push(limits::sending(&measured.total));
    findings.extend(limits::answered(&measured.total));
    findings.extend(limits.judge(&measured.total));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::schema::is_checked_in;

    /// The checked-in schema of `longhaul load --json` equals the generated schema.
    #[test]
    fn the_checked_in_schema_is_current() {
        is_checked_in::<Report>("load");
    }
}
