//! [`Interval`], what the load counted and measured since the last look. Pure; owned by the worker until it is taken.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::oracle::Judgement;
use crate::examples::{self, Examples};
use crate::histogram;
use crate::wire::{Class, Failure};

/// Counts and latencies since the last `take`. Histograms hold microseconds, 1 us to 120 s, 3 significant digits.
///
/// Over a whole run `planned == sent + overflow` and `sent` is the sum of the outcome counts and `abandoned`; in one
/// interval calls that are still under way make the difference.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Requests whose planned time has come.
    pub planned: u64,
    /// Requests whose call was begun.
    pub sent: u64,
    /// Requests dropped unsent, because the in-flight limit or the stream limit was reached or the worker was behind.
    pub overflow: u64,
    /// Valid answers that admit.
    pub allowed: u64,
    /// Valid answers that deny.
    pub denied: u64,
    /// Any HTTP status but 200, and exchanges that broke off.
    pub http_error: u64,
    /// No complete answer within the timeout.
    pub timeout: u64,
    /// No TCP connection.
    pub connect: u64,
    /// No TLS session.
    pub tls: u64,
    /// HTTP 200 with an answer that kube-apiserver would not accept.
    pub invalid_response: u64,
    /// Calls cut off when the load was stopped and the drain time was over. Not the subject's fault.
    pub abandoned: u64,
    /// Valid answers that are not the right one.
    pub wrong_verdicts: u64,
    /// Of these: admitted although an image does not exist, or without every image pinned as it must be.
    pub wrong_allows: u64,
    /// From the planned time to the end of the answer, admitted.
    pub response_allowed: Histogram<u64>,
    /// From the planned time to the end of the answer, denied.
    pub response_denied: Histogram<u64>,
    /// From the planned time to the failure, every other outcome.
    pub response_error: Histogram<u64>,
    /// From the real start of the call (connecting included) to its end, every outcome.
    pub service: Histogram<u64>,
    /// From the planned time to the real start of the call: the generator's own fault.
    pub lateness: Histogram<u64>,
    /// At most five distinct texts: what failed, or what was wrong about a verdict.
    pub examples: Vec<String>,
}

impl Default for Interval {
    fn default() -> Self {
        Self {
            planned: 0,
            sent: 0,
            overflow: 0,
            allowed: 0,
            denied: 0,
            http_error: 0,
            timeout: 0,
            connect: 0,
            tls: 0,
            invalid_response: 0,
            abandoned: 0,
            wrong_verdicts: 0,
            wrong_allows: 0,
            response_allowed: histogram::empty(),
            response_denied: histogram::empty(),
            response_error: histogram::empty(),
            service: histogram::empty(),
            lateness: histogram::empty(),
            examples: Vec::new(),
        }
    }
}

impl Interval {
    /// Adds another interval to this one, for totals.
    pub fn add(&mut self, other: &Self) {
        self.planned += other.planned;
        self.sent += other.sent;
        self.overflow += other.overflow;
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.http_error += other.http_error;
        self.timeout += other.timeout;
        self.connect += other.connect;
        self.tls += other.tls;
        self.invalid_response += other.invalid_response;
        self.abandoned += other.abandoned;
        self.wrong_verdicts += other.wrong_verdicts;
        self.wrong_allows += other.wrong_allows;
        histogram::add(&mut self.response_allowed, &other.response_allowed);
        histogram::add(&mut self.response_denied, &other.response_denied);
        histogram::add(&mut self.response_error, &other.response_error);
        histogram::add(&mut self.service, &other.service);
        histogram::add(&mut self.lateness, &other.lateness);
        examples::merge(&mut self.examples, &other.examples);
    }

    /// Calls that did not end in a valid answer.
    pub fn errors(&self) -> u64 {
        self.http_error + self.timeout + self.connect + self.tls + self.invalid_response
    }
}

/// Collects an interval. The worker writes, `take` swaps.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    interval: Interval,
    examples: Examples,
}

/// When a call was planned, begun and over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub response: Duration,
    pub service: Duration,
}

impl Recorder {
    pub(super) fn sent(&mut self, lateness: Duration) {
        self.interval.sent += 1;
        histogram::record(&mut self.interval.lateness, lateness);
    }

    pub(super) fn answered(&mut self, times: Times, judgement: Judgement) {
        let interval = &mut self.interval;
        histogram::record(&mut interval.service, times.service);
        if judgement.allowed {
            interval.allowed += 1;
            histogram::record(&mut interval.response_allowed, times.response);
        } else {
            interval.denied += 1;
            histogram::record(&mut interval.response_denied, times.response);
        }
        if let Some(wrong) = judgement.wrong {
            interval.wrong_verdicts += 1;
            interval.wrong_allows += u64::from(wrong.allow);
            let sort = if wrong.allow { "wrong allow" } else { "wrong verdict" };
            self.examples.note(sort, || wrong.why);
        }
    }

    pub(super) fn failed(&mut self, times: Times, failure: Failure) {
        let interval = &mut self.interval;
        histogram::record(&mut interval.service, times.service);
        histogram::record(&mut interval.response_error, times.response);
        *match failure.class {
            Class::HttpError => &mut interval.http_error,
            Class::Timeout => &mut interval.timeout,
            Class::Connect => &mut interval.connect,
            Class::Tls => &mut interval.tls,
            Class::InvalidResponse => &mut interval.invalid_response,
        } += 1;
        self.examples.note(failure.class.text(), || failure.text);
    }

    pub(super) fn abandoned(&mut self, calls: u64) {
        self.interval.abandoned += calls;
    }

    pub(super) fn finish(self, (planned, overflow): (u64, u64)) -> Interval {
        Interval { planned, overflow, examples: self.examples.into_texts(), ..self.interval }
    }
}
