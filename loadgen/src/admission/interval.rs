//! [`Interval`]: counts and measurements of the load since the last call of `take`. Pure, without I/O; one worker writes
//! into an interval until it is taken.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::corpus::Corpus;
use super::oracle::Judgement;
use crate::examples::{self, Examples};
use crate::failure::{Class, Failure};
use crate::histogram;

/// Adds two values of counts field by field. Another process may send any numbers, so a sum stops at the highest
/// number.
macro_rules! counts {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $count:ident: u64,)+ }) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$doc])* pub $count: u64,)+
        }

        impl $name {
            pub fn add(&mut self, other: &Self) {
                $(self.$count = self.$count.saturating_add(other.$count);)+
            }
        }
    };
}

counts! {
    /// The numbers of requests by outcome, which can be added up. Records and messages between processes contain these
    /// numbers unchanged.
    ///
    /// Over a whole run, these numbers satisfy `planned == sent + overflow`, and `sent` is the sum of the outcomes and
    /// `abandoned`. In a single interval, calls in flight make these sums differ.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub struct Counts {
        /// Requests whose planned time has come.
        pub planned: u64,
        /// Requests whose call was begun.
        pub sent: u64,
        /// Requests that were not sent, because the limit of calls in flight or of streams was reached, or the worker
        /// was late.
        pub overflow: u64,
        /// Valid answers that allow the request.
        pub allowed: u64,
        /// Valid answers that deny the request.
        pub denied: u64,
        /// Answers with an HTTP status other than 200, and exchanges that broke off.
        pub http_error: u64,
        /// Calls without a complete answer within the timeout.
        pub timeout: u64,
        /// Calls for which no TCP connection could be made.
        pub connect: u64,
        /// Calls for which no TLS session could be made.
        pub tls: u64,
        /// Answers with HTTP 200 that kube-apiserver would not accept.
        pub invalid_response: u64,
        /// Calls that were cut off because the load was stopped and the drain time was over. The subject is not at
        /// fault for these calls.
        pub abandoned: u64,
        /// Requests that were sent again over another connection or stream, because the server had certainly not
        /// processed them. Sending again is no outcome: a call may be sent again several times, but it ends once.
        pub sent_again: u64,
        /// Denials that are right only because a registry has a fault. An HTTP 500 in answer to an UPDATE counts as
        /// such a denial, because it leaves the decision to the webhook's failurePolicy.
        #[serde(default, skip_serializing_if = "is_none")]
        pub unavailable: u64,
        /// Allowed requests with a locked image whose tag has another digest now.
        #[serde(default, skip_serializing_if = "is_none")]
        pub moved: u64,
        /// Allowed requests among `moved` in which the image is pinned to another digest than the locked one.
        #[serde(default, skip_serializing_if = "is_none")]
        pub unlocked: u64,
        /// Valid answers that differ from the right answer.
        pub wrong_verdicts: u64,
        /// Wrong answers that allow a request although an image does not exist or an image is not pinned as it must be.
        pub wrong_allows: u64,
    }
}

/// Counts and latencies since the last call of `take`. Histograms contain microseconds, from 1 us to 120 s with 3
/// significant digits.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The numbers of requests by outcome.
    pub counts: Counts,
    /// Time from the planned time to the end of the answer, for allowed requests.
    pub response_allowed: Histogram<u64>,
    /// Time from the planned time to the end of the answer, for denied requests.
    pub response_denied: Histogram<u64>,
    /// Time from the planned time to the failure, for every other outcome.
    pub response_error: Histogram<u64>,
    /// Time from the real start of the call, including connecting, to its end, for every outcome.
    pub service: Histogram<u64>,
    /// Time from the planned time to the real start of the call, which is the lateness of the generator.
    pub lateness: Histogram<u64>,
    /// Texts of failures and wrong answers: at most five, all different.
    pub examples: Vec<String>,
    /// The calls with the longest response times, longest first; at most [`SLOWEST`].
    pub slowest: Vec<Slow>,
    /// Bytes in the bodies of all complete answers, as they were received.
    pub answer_bytes: u64,
    /// Whether each call waited for the end of another call ([`super::Load::saturate`]). If it did, no call is late or
    /// overflows, and latencies lack the waiting of users.
    pub closed_loop: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slow {
    /// The request: `Deployment CREATE shop/cart`.
    pub label: String,
    pub outcome: Outcome,
    /// The phases of the call's time, which add up to the response time.
    pub phases: Phases,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// A valid answer that allows the request.
    Allowed,
    /// A valid answer that denies the request.
    Denied,
    /// An HTTP status other than 200, or an exchange that broke off.
    HttpError,
    /// No complete answer came within the timeout.
    Timeout,
    /// No TCP connection could be made.
    Connect,
    /// No TLS session could be made.
    Tls,
    /// An answer with HTTP 200 that kube-apiserver would not accept.
    InvalidResponse,
}

impl Outcome {
    pub fn text(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::HttpError => Class::HttpError.text(),
            Self::Timeout => Class::Timeout.text(),
            Self::Connect => Class::Connect.text(),
            Self::Tls => Class::Tls.text(),
            Self::InvalidResponse => Class::InvalidResponse.text(),
        }
    }
}

impl From<Class> for Outcome {
    fn from(class: Class) -> Self {
        match class {
            Class::HttpError => Self::HttpError,
            Class::Timeout => Self::Timeout,
            Class::Connect => Self::Connect,
            Class::Tls => Self::Tls,
            Class::InvalidResponse => Self::InvalidResponse,
        }
    }
}

/// The phases of a call's time, from its planned time to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    /// The time until the call was begun, and until a connection was idle or dialled.
    pub queue: Duration,
    /// The TCP handshake for which the call waited; zero on an existing connection.
    pub connect: Duration,
    /// The TLS handshake for which the call waited; zero on an existing connection.
    pub tls: Duration,
    /// The time from the request to the first byte of the answer.
    pub wait: Duration,
    /// The time from the first byte of the answer to its end.
    pub body: Duration,
}

impl Phases {
    pub fn response(&self) -> Duration {
        self.queue + self.connect + self.tls + self.wait + self.body
    }
}

/// Maximum number of slow calls that an interval keeps; enough to see their common properties.
pub const SLOWEST: usize = 10;

impl Default for Interval {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            response_allowed: histogram::empty(),
            response_denied: histogram::empty(),
            response_error: histogram::empty(),
            service: histogram::empty(),
            lateness: histogram::empty(),
            examples: Vec::new(),
            slowest: Vec::new(),
            answer_bytes: 0,
            closed_loop: false,
        }
    }
}

impl Interval {
    /// Counts an answer, with the time from the call's start and the time from its planned time.
    pub(super) fn answered(
        &mut self,
        (service, response): (Duration, Duration),
        judgement: Judgement,
        examples: &mut Examples,
    ) -> Outcome {
        histogram::record(&mut self.service, service);
        if let Some(wrong) = judgement.wrong {
            self.counts.wrong_verdicts += 1;
            self.counts.wrong_allows += u64::from(wrong.allow);
            examples.note(if wrong.allow { "wrong allow" } else { "wrong verdict" }, || wrong.why);
        }
        if judgement.allowed {
            self.counts.allowed += 1;
            histogram::record(&mut self.response_allowed, response);
            Outcome::Allowed
        } else {
            self.counts.denied += 1;
            histogram::record(&mut self.response_denied, response);
            Outcome::Denied
        }
    }

    /// Counts a call without a valid answer.
    pub(super) fn failed(
        &mut self,
        (service, response): (Duration, Duration),
        failure: Failure,
        examples: &mut Examples,
    ) {
        histogram::record(&mut self.service, service);
        histogram::record(&mut self.response_error, response);
        *match failure.class {
            Class::HttpError => &mut self.counts.http_error,
            Class::Timeout => &mut self.counts.timeout,
            Class::Connect => &mut self.counts.connect,
            Class::Tls => &mut self.counts.tls,
            Class::InvalidResponse => &mut self.counts.invalid_response,
        } += 1;
        examples.note(failure.class.text(), || failure.text);
    }

    /// Adds another interval to this one, for totals.
    pub fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        histogram::add(&mut self.response_allowed, &other.response_allowed);
        histogram::add(&mut self.response_denied, &other.response_denied);
        histogram::add(&mut self.response_error, &other.response_error);
        histogram::add(&mut self.service, &other.service);
        histogram::add(&mut self.lateness, &other.lateness);
        examples::merge(&mut self.examples, &other.examples);
        self.slowest.extend_from_slice(&other.slowest);
        self.slowest.sort_by_key(|slow| std::cmp::Reverse(slow.phases.response()));
        self.slowest.truncate(SLOWEST);
        self.answer_bytes = self.answer_bytes.saturating_add(other.answer_bytes);
        self.closed_loop |= other.closed_loop;
    }

    /// Number of calls that did not end with a valid answer.
    pub fn errors(&self) -> u64 {
        self.counts.errors()
    }

    /// The response times of all outcomes together, because a client also waits for an error.
    pub fn response(&self) -> Histogram<u64> {
        let mut all = self.response_allowed.clone();
        histogram::add(&mut all, &self.response_denied);
        histogram::add(&mut all, &self.response_error);
        all
    }
}

/// Whether a count is 0 and therefore left out of messages. Load without a scenario has no registry that could be
/// faulty, and the messages between its processes stay unchanged.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Counts {
    /// Number of calls that did not end with a valid answer.
    pub fn errors(&self) -> u64 {
        let classes = [self.http_error, self.timeout, self.connect, self.tls, self.invalid_response];
        classes.into_iter().fold(0, u64::saturating_add)
    }
}

/// Collects the counts and measurements of an interval. One thread writes into the recorder; `take` swaps it for
/// another.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    interval: Interval,
    examples: Examples,
    slowest: Slowest,
}

/// The durations of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// The time from the call's planned time to its end, by phase.
    pub phases: Phases,
    /// The time from the call's real start to its end.
    pub service: Duration,
}

impl Recorder {
    pub(super) fn sent(&mut self, lateness: Duration) {
        self.interval.counts.sent += 1;
        histogram::record(&mut self.interval.lateness, lateness);
    }

    /// Counts a valid answer. `template` is the number of the call's template in the corpus.
    pub(super) fn answered(&mut self, times: Times, template: u32, mut judgement: Judgement) {
        let response = times.phases.response();
        self.interval.counts.unavailable += u64::from(judgement.unavailable);
        self.interval.counts.moved += u64::from(judgement.moved);
        if let Some(how) = judgement.unlocked.take() {
            self.interval.counts.unlocked += 1;
            self.examples.note("unlocked", || how);
        }
        let outcome = self.interval.answered((times.service, response), judgement, &mut self.examples);
        self.slowest.note(response, times.phases, template, outcome);
    }

    pub(super) fn failed(&mut self, times: Times, template: u32, failure: Failure) {
        let response = times.phases.response();
        self.slowest.note(response, times.phases, template, failure.class.into());
        self.interval.failed((times.service, response), failure, &mut self.examples);
    }

    /// Counts a complete answer, valid or not.
    pub(super) fn received(&mut self, body_bytes: usize) {
        self.interval.answer_bytes = self.interval.answer_bytes.saturating_add(body_bytes as u64);
    }

    pub(super) fn sent_again(&mut self) {
        self.interval.counts.sent_again += 1;
    }

    pub(super) fn abandoned(&mut self, calls: u64) {
        self.interval.counts.abandoned += calls;
    }

    pub(super) fn finish(self, (planned, overflow): (u64, u64), corpus: &Corpus, closed_loop: bool) -> Interval {
        let slowest = self.slowest.into_slow(corpus);
        let counts = Counts { planned, overflow, ..self.interval.counts };
        Interval { counts, examples: self.examples.into_texts(), slowest, closed_loop, ..self.interval }
    }
}

/// The longest calls of the interval so far. The texts of these calls are made only on demand.
#[derive(Debug, Default)]
struct Slowest {
    kept: Vec<(Duration, Phases, u32, Outcome)>,
    threshold: Duration,
}

impl Slowest {
    fn note(&mut self, response: Duration, phases: Phases, template: u32, outcome: Outcome) {
        if response <= self.threshold {
            return;
        }
        if self.kept.len() == SLOWEST {
            self.kept.pop();
        } else if self.kept.is_empty() {
            self.kept.reserve_exact(SLOWEST);
        }
        let at = self.kept.partition_point(|(other, ..)| *other >= response);
        self.kept.insert(at, (response, phases, template, outcome));
        if let [.., (least, ..)] = &self.kept[..]
            && self.kept.len() == SLOWEST
        {
            self.threshold = *least;
        }
    }

    fn into_slow(self, corpus: &Corpus) -> Vec<Slow> {
        let label = |template: u32| corpus.template(template).label.clone();
        let slow = |(_, phases, template, outcome)| Slow { label: label(template), outcome, phases };
        self.kept.into_iter().map(slow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval keeps the longest calls, longest first, in whatever order they end.
    #[test]
    fn the_slowest_are_kept() {
        let mut slowest = Slowest::default();
        for i in 0..1000u64 {
            let response = Duration::from_micros(i * 7919 % 1000);
            slowest.note(response, Phases { wait: response, ..Phases::default() }, 0, Outcome::Allowed);
        }
        let kept: Vec<u128> = slowest.kept.iter().map(|(response, ..)| response.as_micros()).collect();
        assert_eq!(kept, (990..1000).rev().collect::<Vec<u128>>());
    }

    /// If the numbers of another process are too large, a sum stops at the highest number.
    #[test]
    fn sums_stop_at_the_highest_number() {
        let mut counts = Counts { planned: u64::MAX, timeout: u64::MAX, tls: 5, ..Counts::default() };
        counts.add(&Counts { planned: 7, sent: 3, ..Counts::default() });
        assert_eq!((counts.planned, counts.sent, counts.errors()), (u64::MAX, 3, u64::MAX));
    }

    /// The sum contains the counts and every histogram of both intervals, each in its field.
    #[test]
    fn adding_adds_everything() {
        let numbered = |from: u64| {
            let mut interval = Interval {
                counts: Counts { planned: from, sent: from + 1, wrong_allows: from + 2, ..Counts::default() },
                examples: (0..4).map(|n| format!("{from} {n}")).collect(),
                answer_bytes: from + 20,
                closed_loop: from > 50,
                ..Interval::default()
            };
            let Interval { response_allowed, response_denied, response_error, service, lateness, .. } = &mut interval;
            for (samples, histogram) in
                (from..).zip([response_allowed, response_denied, response_error, service, lateness])
            {
                histogram.record_n(1000, samples).unwrap();
            }
            interval
        };
        let (mut total, other) = (numbered(0), numbered(100));
        total.add(&other);
        assert_eq!(total.counts, Counts { planned: 100, sent: 102, wrong_allows: 104, ..Counts::default() });
        let histograms =
            [&total.response_allowed, &total.response_denied, &total.response_error, &total.service, &total.lateness];
        assert_eq!(histograms.map(Histogram::len), [100, 102, 104, 106, 108]);
        assert!(total.closed_loop);
        assert_eq!(total.answer_bytes, 140);
        assert_eq!(total.examples, ["0 0", "0 1", "0 2", "0 3", "100 0"], "as many as one interval may have");
    }

    /// The sum of two intervals keeps the longest calls of both.
    #[test]
    fn adding_keeps_the_slowest_of_both() {
        let slow = |ms: u64| Slow {
            label: String::new(),
            outcome: Outcome::Denied,
            phases: Phases { tls: Duration::from_millis(ms), ..Phases::default() },
        };
        let of = |from: u64| Interval { slowest: (from..from + 8).rev().map(slow).collect(), ..Interval::default() };
        let mut total = of(1);
        total.add(&of(5));
        let kept: Vec<u128> = total.slowest.iter().map(|slow| slow.phases.response().as_millis()).collect();
        assert_eq!(kept, [12, 11, 10, 9, 8, 8, 7, 7, 6, 6]);
    }
}
