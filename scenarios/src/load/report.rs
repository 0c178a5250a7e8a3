//! The result of a measurement for programs: one JSON object with a versioned schema. Pure.

use loadgen::admission::{Interval, Slow};
use reports::judge::{Finding, Verdict};
use reports::record::Quantiles;
use serde::Serialize;

use super::limits;
use super::measure::{Ended, Measured};

/// The version of this format.
pub(crate) const SCHEMA: &str = "longhaul-load/v1";

/// What was asked for, what was measured, and what became of the limits.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) schema: &'static str,
    pub(crate) url: String,
    /// How the requests were spread over time, in words.
    pub(crate) schedule: String,
    pub(crate) client: String,
    pub(crate) seed: u64,
    /// SHA-256 over payloads and arrivals: equal fingerprints mean equal load.
    pub(crate) fingerprint: String,
    /// Processes that sent.
    pub(crate) workers: usize,
    /// From the first planned moment to the end of planning.
    pub(crate) lasted_ms: u64,
    pub(crate) numbers: Numbers,
    pub(crate) verdict: Verdict,
    pub(crate) exit_code: u8,
    pub(crate) findings: Vec<Finding>,
}

/// Counts and distributions. All times in microseconds.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Numbers {
    /// Requests whose time came.
    pub(crate) planned: u64,
    pub(crate) sent: u64,
    /// Planned and not sent, because every call that may be in flight was under way.
    pub(crate) overflow: u64,
    /// `sent / planned`; below 0.99 the run is invalid.
    pub(crate) sent_share: f64,
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    pub(crate) http_error: u64,
    pub(crate) timeout: u64,
    pub(crate) connect: u64,
    pub(crate) tls: u64,
    pub(crate) invalid_response: u64,
    /// Cut off when the run was ended.
    pub(crate) abandoned: u64,
    /// From the planned moment to the end of the answer or the failure, all outcomes.
    pub(crate) response: Option<Quantiles>,
    pub(crate) response_allowed: Option<Quantiles>,
    pub(crate) response_denied: Option<Quantiles>,
    pub(crate) response_error: Option<Quantiles>,
    /// From the real start of the call to its end.
    pub(crate) service: Option<Quantiles>,
    /// From the planned moment to the real start: the generator's own fault.
    pub(crate) lateness: Option<Quantiles>,
    /// The slowest calls with where their time went, slowest first. Workers do not tell theirs.
    pub(crate) slowest: Vec<Slowest>,
    /// Up to five error texts.
    pub(crate) examples: Vec<String>,
}

/// A slow call. All times in microseconds.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Slowest {
    pub(crate) label: String,
    pub(crate) outcome: &'static str,
    pub(crate) response_us: u64,
    /// Until a connection was there for it.
    pub(crate) queue_us: u64,
    /// Its own TCP and TLS handshakes, where it needed new ones.
    pub(crate) connect_us: u64,
    pub(crate) tls_us: u64,
    /// From the request to the first byte of the answer.
    pub(crate) wait_us: u64,
    pub(crate) body_us: u64,
}

impl Slowest {
    fn of(slow: &Slow) -> Self {
        let us = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let phases = &slow.phases;
        Self {
            label: slow.label.clone(),
            outcome: slow.outcome,
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
            planned: total.planned,
            sent: total.sent,
            overflow: total.overflow,
            sent_share: limits::sent_share(total),
            allowed: total.allowed,
            denied: total.denied,
            http_error: total.http_error,
            timeout: total.timeout,
            connect: total.connect,
            tls: total.tls,
            invalid_response: total.invalid_response,
            abandoned: total.abandoned,
            response: Quantiles::of_any(&limits::response(total)),
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

/// Everything that was found about a measurement: its own validity first, then the limits.
pub(crate) fn findings(measured: &Measured, limits: &limits::Limits) -> Vec<Finding> {
    let invalid = |text: String| Finding {
        judge: "validity".to_owned(),
        budget: "run.whole".to_owned(),
        verdict: Verdict::Invalid,
        observed: String::new(),
        limit: String::new(),
        text,
    };
    let mut findings = match &measured.ended {
        Ended::Whole => Vec::new(),
        Ended::Interrupted(signal) => {
            vec![invalid(format!("{signal} ended the run early: the numbers are those of what was sent until then"))]
        }
        Ended::Broken(why) => vec![invalid(why.clone())],
    };
    findings.push(limits::sending(&measured.total));
    findings.extend(limits.judge(&measured.total));
    findings
}
