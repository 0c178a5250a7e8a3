//! The search for the highest rate at which a webhook meets its limits: chooses each next rate and ends the search, and
//! decides whether webhook or generator broke a limit. Does no I/O and measures nothing.

use loadgen::admission::{Counts, Interval};
use reports::judge::{Finding, Verdict};
use reports::words;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Rate, Span};

use super::limits::{Limits, sent_share};

/// Factor between two rates. The rate is multiplied by the factor until a limit is broken, or divided until all limits
/// are met.
const FACTOR: f64 = 2.0;
/// The search ends if the lowest failed rate is at most this factor above the highest good rate.
const PRECISION: f64 = 1.05;
/// Factor for the next rate if a longer measurement does not confirm a rate.
const STEP_DOWN: f64 = 0.9;
/// Maximum number of measurements, without confirmations: doubling from 1/s to 50,000/s takes 16, the bisection five more.
pub(crate) const STAGES_MAX: u32 = 22;
/// Maximum number of confirmations. If three confirmations in a row fail, each at a lower rate, no rate is reported.
pub(crate) const CONFIRMATIONS_MAX: u32 = 3;
/// Length of a confirmation, as a multiple of a usual measurement.
pub(crate) const CONFIRMATION_LONGER: u32 = 3;
/// Maximum factor by which a measurement at a low rate is lengthened, so that enough answers come for its percentiles.
pub(crate) const LENGTHENED_MAX: u32 = 6;
/// The lowest rate, in requests per second.
const LOWEST: f64 = 1.0;
/// If calls in flight used less than this share of the limit of calls in flight, the generator was too slow.
const IN_FLIGHT_BUSY: f64 = 0.8;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Next {
    Try(f64),
    /// A longer measurement at this rate, to confirm the result.
    Confirm(f64),
    End(Outcome),
}

/// The result of the search, in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Outcome {
    Confirmed(f64),
    /// The limits were met and confirmed at the highest allowed rate.
    AtLeast(f64),
    /// No rate met the limits.
    None,
    /// No rate could be confirmed, because measurements at equal rates disagree.
    Unconfirmed,
}

#[derive(Debug, Clone)]
pub(crate) struct Search {
    start: f64,
    highest: f64,
    good: Option<f64>,
    broken: Option<f64>,
    stages: u32,
    confirmations: u32,
    confirmed: Option<f64>,
    to_confirm: Option<f64>,
}

impl Search {
    /// Starts a search that begins at the rate `start` and never exceeds `highest`.
    pub(crate) fn new(start: f64, highest: f64) -> Self {
        Self {
            start: start.clamp(LOWEST, highest),
            highest,
            good: None,
            broken: None,
            stages: 0,
            confirmations: 0,
            confirmed: None,
            to_confirm: None,
        }
    }

    pub(crate) fn next(&self) -> Next {
        if let Some(rate) = self.confirmed {
            return Next::End(if rate >= self.highest { Outcome::AtLeast(rate) } else { Outcome::Confirmed(rate) });
        }
        if let Some(rate) = self.to_confirm {
            let over = self.confirmations >= CONFIRMATIONS_MAX || rate < LOWEST;
            return if over { Next::End(Outcome::Unconfirmed) } else { Next::Confirm(rate) };
        }
        let rate = match (self.good, self.broken) {
            (None, None) => self.start,
            (Some(good), None) if good >= self.highest => return Next::Confirm(good),
            (Some(good), None) => (good * FACTOR).min(self.highest),
            (None, Some(broken)) if broken <= LOWEST => return Next::End(Outcome::None),
            (None, Some(broken)) => (broken / FACTOR).max(LOWEST),
            (Some(good), Some(broken)) if broken <= good * PRECISION => return Next::Confirm(good),
            (Some(good), Some(broken)) => whole(f64::midpoint(good, broken)),
        };
        match self.good {
            _ if self.stages < STAGES_MAX => Next::Try(rate),
            Some(good) => Next::Confirm(good),
            None => Next::End(Outcome::None),
        }
    }

    /// Records whether the last measurement met the limits.
    pub(crate) fn record(&mut self, met: bool) {
        match self.next() {
            Next::Try(rate) => {
                self.stages += 1;
                if met { self.good = Some(rate) } else { self.broken = Some(rate) }
            }
            Next::Confirm(rate) => {
                self.confirmations += 1;
                if met { self.confirmed = Some(rate) } else { self.to_confirm = Some(whole(rate * STEP_DOWN)) }
            }
            Next::End(_) => {}
        }
    }
}

/// A rounded rate: whole numbers, or tenths below 20/s.
fn whole(rate: f64) -> f64 {
    if rate < 20.0 { (rate * 10.0).round() / 10.0 } else { rate.round() }
}

/// The program because of which a limit was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Culprit {
    Subject,
    Generator,
}

/// One measurement of the search, as text and JSON output show it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stage {
    pub(crate) rate_per_second: f64,
    pub(crate) length_ms: u64,
    pub(crate) confirmation: bool,
    /// SHA-256 over payloads and arrivals of the sent plan.
    pub(crate) fingerprint: String,
    pub(crate) met: bool,
    /// Whether too few answers came to decide.
    pub(crate) undecided: bool,
    pub(crate) sent_share: f64,
    pub(crate) errors: u64,
    pub(crate) p50_us: Option<u64>,
    pub(crate) p99_us: Option<u64>,
    pub(crate) lateness_p99_us: Option<u64>,
    /// The program that broke the limit; null if the limits were met.
    pub(crate) culprit: Option<Culprit>,
    /// The broken limit, as a sentence.
    pub(crate) why: Option<String>,
}

/// The load of one measurement: rate and fingerprint.
pub(crate) struct Tried {
    pub(crate) rate: f64,
    pub(crate) length: Span,
    pub(crate) confirmation: bool,
    pub(crate) fingerprint: String,
}

pub(crate) fn stage(tried: Tried, total: &Interval, context: &Context<'_>) -> Stage {
    let Tried { rate, length, confirmation, fingerprint } = tried;
    let findings = context.findings(total);
    let broken = findings.iter().find(|finding| finding.verdict != Verdict::Pass);
    let all = total.response();
    let percentile = |histogram: &hdrhistogram::Histogram<u64>, parts| reports::record::quantile_us(histogram, parts);
    Stage {
        rate_per_second: rate,
        length_ms: length.as_millis(),
        confirmation,
        fingerprint,
        met: broken.is_none(),
        undecided: broken.is_some_and(|finding| finding.verdict == Verdict::Inconclusive),
        sent_share: sent_share(total),
        errors: total.errors(),
        p50_us: percentile(&all, 500),
        p99_us: percentile(&all, 990),
        lateness_p99_us: percentile(&total.lateness, 990),
        culprit: broken.map(|finding| context.culprit(finding, rate, total)),
        why: broken.map(|finding| finding.text.clone()),
    }
}

/// The limits that apply to all measurements.
pub(crate) struct Context<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) max_in_flight: u32,
}

impl Context<'_> {
    /// The findings of a measurement. The first finding says whether the generator sent the plan in time; otherwise no
    /// figure is valid.
    pub(crate) fn findings(&self, total: &Interval) -> Vec<Finding> {
        let mut findings = vec![super::limits::sending(total)];
        findings.extend(self.limits.judge(total));
        findings
    }

    /// Whether the generator or the webhook broke the limit. The generator broke the limit if requests were dropped
    /// although calls in flight (by Little's law, rate times service time) left room. The generator also broke the
    /// limit if the service times alone meet the limit.
    fn culprit(&self, finding: &Finding, rate: f64, total: &Interval) -> Culprit {
        if finding.verdict == Verdict::Invalid {
            let under_way = rate * sent_share(total) * total.service.mean() / 1e6;
            let room = under_way < f64::from(self.max_in_flight) * IN_FLIGHT_BUSY;
            return if room { Culprit::Generator } else { Culprit::Subject };
        }
        let mut in_time =
            Interval { counts: Counts { sent: total.counts.sent, ..Counts::default() }, ..Interval::default() };
        in_time.response_allowed = total.service.clone();
        let name = finding.budget.strip_prefix("load.").unwrap_or_default();
        let met = |finding: &Finding| finding.budget.ends_with(name) && finding.verdict == Verdict::Pass;
        if name != "errors" && self.limits.judge(&in_time).iter().any(met) {
            return Culprit::Generator;
        }
        Culprit::Subject
    }
}

/// Length of the measurement at this rate: long enough to decide its percentiles, if possible.
pub(crate) fn length(rate: f64, stage: Span, limits: &Limits) -> Span {
    // A little more than needed, because calls that are cut off have no answer.
    let needed_s = limits.samples_needed() as f64 / rate * 1.05;
    let longest = stage.0 * LENGTHENED_MAX;
    Span(std::time::Duration::from_secs_f64(needed_s.clamp(stage.0.as_secs_f64(), longest.as_secs_f64())))
}

/// A line of text for one measurement.
pub(crate) fn line(stage: &Stage) -> String {
    let time = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), words::micros);
    let rate = Rate::per_second(stage.rate_per_second);
    format!(
        "{:>9} {:>5} {:>6.2} % {:>8} {:>8} {:>7} {:>8}  {}",
        rate.to_string(),
        format!("{:.0}s", stage.length_ms as f64 / 1e3),
        stage.sent_share * 100.0,
        time(stage.p50_us),
        time(stage.p99_us),
        words::count(stage.errors),
        time(stage.lateness_p99_us),
        match (&stage.why, stage.culprit) {
            (Some(why), Some(Culprit::Generator)) => format!("broken by the generator: {why}"),
            (Some(why), _) if stage.undecided => format!("undecided: {why}"),
            (Some(why), _) => format!("broken: {why}"),
            (None, _) if stage.confirmation => "met, confirmed".to_owned(),
            (None, _) => "met".to_owned(),
        }
    )
}

/// Column headings for [`line()`].
pub(crate) fn heads() -> String {
    format!("{:>9} {:>5} {:>8} {:>8} {:>8} {:>7} {:>8}", "rate", "for", "sent", "p50", "p99", "errors", "late p99")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Simulates the search: a webhook meets its limits up to the rate `capacity`. Returns (outcome, measurements,
    /// confirmations).
    fn search(start: f64, highest: f64, capacity: f64) -> (Outcome, u32, u32) {
        let mut search = Search::new(start, highest);
        loop {
            match search.next() {
                Next::Try(rate) | Next::Confirm(rate) => search.record(rate <= capacity),
                Next::End(outcome) => return (outcome, search.stages, search.confirmations),
            }
        }
    }

    proptest! {
        /// From any first rate, the search ends just below the capacity, within its precision and number of
        /// measurements.
        #[test]
        fn the_capacity_is_found(start in 1.0f64..20_000.0, capacity in 1.0f64..49_000.0) {
            let (outcome, stages, confirmations) = search(start, 50_000.0, capacity);
            prop_assert!(stages <= STAGES_MAX && confirmations <= CONFIRMATIONS_MAX);
            let Outcome::Confirmed(rate) = outcome else { panic!("{outcome:?}") };
            prop_assert!(rate <= capacity && rate * PRECISION * 1.1 >= capacity.min(rate * 2.0), "{rate} of {capacity}");
            prop_assert!(rate >= capacity / (PRECISION * 1.05), "{rate} of {capacity}");
        }
    }

    #[test]
    fn the_ends_are_told() {
        assert_eq!(search(1000.0, 5000.0, 1e9).0, Outcome::AtLeast(5000.0));
        assert_eq!(search(1000.0, 5000.0, 0.0).0, Outcome::None);
        let mut flaky = Search::new(1000.0, 5000.0);
        while let Next::Try(rate) = flaky.next() {
            flaky.record(rate <= 2000.0);
        }
        for _ in 0..CONFIRMATIONS_MAX {
            assert!(matches!(flaky.next(), Next::Confirm(_)));
            flaky.record(false);
        }
        assert_eq!(flaky.next(), Next::End(Outcome::Unconfirmed));
    }

    fn total(sent: u64, overflow: u64, response_us: u64, service_us: u64) -> Interval {
        let counts = Counts { planned: sent + overflow, sent, overflow, allowed: sent, ..Counts::default() };
        let mut total = Interval { counts, ..Interval::default() };
        total.response_allowed.record_n(response_us, sent).unwrap();
        total.service.record_n(service_us, sent).unwrap();
        total
    }

    /// A late generator and a slow webhook can break the same limit, and the report distinguishes both cases.
    #[test]
    fn the_generator_is_told_from_the_webhook() {
        let limits = Limits { p99: Some(Span::from_millis(20)), ..Limits::default() };
        let context = Context { limits: &limits, max_in_flight: 500 };
        let judged = |total: &Interval| {
            let fingerprint = String::new();
            let tried = Tried { rate: 1000.0, length: Span::from_secs(10), confirmation: false, fingerprint };
            stage(tried, total, &context)
        };
        assert!(judged(&total(10_000, 0, 15_000, 14_000)).met);
        let slow = judged(&total(10_000, 0, 30_000, 29_000));
        assert_eq!((slow.met, slow.culprit), (false, Some(Culprit::Subject)));
        let late = judged(&total(10_000, 0, 30_000, 2_000));
        assert_eq!((late.met, late.culprit), (false, Some(Culprit::Generator)));
        let full = judged(&total(5_000, 5_000, 1_000_000, 1_000_000));
        assert_eq!((full.met, full.culprit), (false, Some(Culprit::Subject)), "500 calls of 1 s were under way");
        let behind = judged(&total(9_000, 1_000, 2_000, 2_000));
        assert_eq!((behind.met, behind.culprit), (false, Some(Culprit::Generator)));
    }

    #[test]
    fn low_rates_get_longer_stages_within_a_bound() {
        let limits = Limits { p99: Some(Span::from_millis(20)), ..Limits::default() };
        let stage = Span::from_secs(10);
        assert_eq!(length(5000.0, stage, &limits), stage);
        assert_eq!(length(500.0, stage, &limits), Span::from_secs(21));
        assert_eq!(length(1.0, stage, &limits), Span::from_secs(60));
    }
}
