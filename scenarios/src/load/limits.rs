//! The limits of a measurement, and the findings about them. Does no I/O.

use std::fmt;
use std::str::FromStr;

use hdrhistogram::Histogram;
use loadgen::admission::Interval;
use reports::judge::{Finding, Verdict};
use reports::record::{quantile_us, samples_needed};
use reports::words;
use units::Span;

/// Minimum share of planned requests that must be sent. If fewer requests were sent, the load was not the planned load.
pub(crate) const SENT_LEAST: f64 = 0.99;

/// Minimum number of calls to judge the share of errors. With fewer calls, the share of errors depends on chance.
const ERROR_CALLS_LEAST: u64 = 100;

/// Limits of response time and errors. A limit that is not given is not judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, clap::Args)]
pub(crate) struct Limits {
    /// Exit 1 if half of the answers take longer than this. Times count from the planned start of the request.
    #[arg(long, value_name = "TIME")]
    pub(crate) p50: Option<Span>,
    /// Exit 1 if more than one answer in a hundred takes longer than this.
    #[arg(long, value_name = "TIME")]
    pub(crate) p99: Option<Span>,
    /// Exit 1 if more than one answer in a thousand takes longer than this.
    #[arg(long, value_name = "TIME")]
    pub(crate) p999: Option<Span>,
    /// Exit 1 if more than this share of the calls gets no valid answer, such as `0.1%`.
    #[arg(long, value_name = "SHARE")]
    pub(crate) errors: Option<Percent>,
}

/// A percentage, written `0.1%`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Percent(pub(crate) f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        match number {
            Some(number) if (0.0..=100.0).contains(&number) => Ok(Self(number)),
            _ => Err(format!("`{text}` is no share: write 0% to 100%, for example `0.1%`")),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl Limits {
    /// Compares the measurement with each limit that is set.
    pub(crate) fn judge(&self, total: &Interval) -> Vec<Finding> {
        let response = total.response();
        let mut findings = Vec::new();
        for (name, limit, parts) in [("p50", self.p50, 500), ("p99", self.p99, 990), ("p999", self.p999, 999)] {
            if let Some(limit) = limit {
                findings.push(quantile(name, limit, parts, &response));
            }
        }
        findings.extend(self.errors.map(|limit| errors(limit, total)));
        findings
    }

    /// The limits as text, such as `p99 20ms, errors 0.1%`.
    pub(crate) fn describe(&self) -> String {
        let mut parts: Vec<String> = [("p50", self.p50), ("p99", self.p99), ("p99.9", self.p999)]
            .into_iter()
            .filter_map(|(name, limit)| Some(format!("{name} {}", limit?)))
            .collect();
        parts.extend(self.errors.map(|limit| format!("errors {limit}")));
        parts.join(", ")
    }

    /// The number of answers that the strictest limit needs for a decision.
    pub(crate) fn samples_needed(&self) -> u64 {
        let of = |limit: Option<Span>, parts| limit.map_or(0, |_| samples_needed(parts));
        let errors = self.errors.map_or(0, |_| ERROR_CALLS_LEAST);
        of(self.p50, 500).max(of(self.p99, 990)).max(of(self.p999, 999)).max(errors)
    }
}

/// The share of planned requests that were sent.
pub(crate) fn sent_share(total: &Interval) -> f64 {
    if total.counts.planned == 0 { 0.0 } else { total.counts.sent as f64 / total.counts.planned as f64 }
}

/// The finding whether the generator sent the plan in time. If the generator did not send the plan in time, no other
/// figure is valid.
pub(crate) fn sending(total: &Interval) -> Finding {
    let share = sent_share(total);
    let enough = share >= SENT_LEAST;
    let text = if enough {
        format!("{:.2} % of the planned requests were sent", share * 100.0)
    } else {
        format!(
            "only {:.2} % of the planned requests were sent, {} came while --max-in-flight calls were open: lower the rate, or raise \
             --max-in-flight if the webhook should take more calls at once",
            share * 100.0,
            words::count(total.counts.overflow)
        )
    };
    Finding {
        judge: "validity".to_owned(),
        budget: "generator.sent".to_owned(),
        verdict: if enough { Verdict::Pass } else { Verdict::Invalid },
        observed: format!("{:.2} %", share * 100.0),
        limit: format!("at least {:.0} %", SENT_LEAST * 100.0),
        text,
        used_pct: None,
    }
}

/// A finding if no call got an answer from a webhook, because the time until a failure is no response time.
pub(crate) fn answered(total: &Interval) -> Option<Finding> {
    let counts = &total.counts;
    let ended = counts.sent.saturating_sub(counts.abandoned);
    if ended == 0 || counts.allowed > 0 || counts.denied > 0 {
        return None;
    }
    Some(Finding {
        judge: "validity".to_owned(),
        budget: "load.answered".to_owned(),
        verdict: Verdict::Inconclusive,
        observed: "0".to_owned(),
        limit: "at least 1".to_owned(),
        text: format!(
            "none of {} got a valid answer, so the times are those of failures",
            words::counted(ended, "call")
        ),
        used_pct: None,
    })
}

/// The worst verdict of the findings; a pass if there are no findings.
pub(crate) fn worst(findings: &[Finding]) -> Verdict {
    findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Pass)
}

fn quantile(name: &str, limit: Span, parts_per_thousand: u64, response: &Histogram<u64>) -> Finding {
    let limit_us = u64::try_from(limit.0.as_micros()).unwrap_or(u64::MAX);
    let finding = |verdict, observed: String, text| Finding {
        judge: "load".to_owned(),
        budget: format!("load.{name}"),
        verdict,
        observed,
        limit: limit.to_string(),
        text,
        used_pct: None,
    };
    let Some(us) = quantile_us(response, parts_per_thousand) else {
        let needed = samples_needed(parts_per_thousand);
        let text = format!(
            "{name} is not known from {}: it needs {} answers, run longer",
            words::counted(response.len(), "answer"),
            words::count(needed)
        );
        return finding(Verdict::Inconclusive, format!("{} answers", response.len()), text);
    };
    let (verdict, word) = if us > limit_us { (Verdict::Fail, "above") } else { (Verdict::Pass, "within") };
    let text = format!("{name} of the response time is {}, {word} its limit of {limit}", words::micros(us));
    finding(verdict, words::micros(us), text)
}

fn errors(limit: Percent, total: &Interval) -> Finding {
    let ended = total.counts.sent.saturating_sub(total.counts.abandoned);
    let share = if ended == 0 { 0.0 } else { total.errors() as f64 / ended as f64 * 100.0 };
    let (verdict, word) = match share > limit.0 {
        _ if ended < ERROR_CALLS_LEAST => (Verdict::Inconclusive, "too few to compare with"),
        true => (Verdict::Fail, "above"),
        false => (Verdict::Pass, "within"),
    };
    Finding {
        judge: "load".to_owned(),
        budget: "load.errors".to_owned(),
        verdict,
        observed: format!("{share:.3} %"),
        limit: limit.to_string(),
        text: format!(
            "{} of {} calls ended without a valid answer ({share:.3} %), {word} the limit of {limit}",
            words::count(total.errors()),
            words::count(ended)
        ),
        used_pct: None,
    }
}

#[cfg(test)]
mod tests {
    use loadgen::admission::Counts;

    use super::*;

    fn total(answers: u64, us: u64, errors: u64) -> Interval {
        let sent = answers + errors;
        let counts = Counts { planned: sent, sent, allowed: answers, http_error: errors, ..Counts::default() };
        let mut total = Interval { counts, ..Interval::default() };
        total.response_allowed.record_n(us, answers).unwrap();
        total.response_error.record_n(us, errors).unwrap();
        total
    }

    fn findings(limits: &Limits, total: &Interval) -> Vec<(Verdict, String)> {
        limits.judge(total).into_iter().map(|finding| (finding.verdict, finding.text)).collect()
    }

    #[test]
    fn limits_decide_only_with_enough_samples() {
        let limits = Limits { p99: Some(Span::from_millis(20)), ..Limits::default() };
        assert_eq!(worst(&limits.judge(&total(10_000, 19_000, 0))), Verdict::Pass);
        let broken = findings(&limits, &total(10_000, 25_000, 0));
        assert_eq!(broken[0].0, Verdict::Fail);
        assert!(broken[0].1.contains("is 25 ms, above its limit of 20ms"), "{}", broken[0].1);
        let few = findings(&limits, &total(9_999, 25_000, 0));
        assert_eq!(few[0].0, Verdict::Inconclusive);
        assert!(few[0].1.contains("it needs 10,000 answers, run longer"), "{}", few[0].1);
    }

    /// A fast status 500 breaks only the limit of errors; a slow status 500 also raises the percentiles of the response
    /// time.
    #[test]
    fn errors_are_part_of_the_response_time_and_have_a_limit_of_their_own() {
        let limits = Limits { errors: Some("1%".parse().unwrap()), ..Limits::default() };
        assert_eq!(worst(&limits.judge(&total(990, 10, 10))), Verdict::Pass);
        assert_eq!(worst(&limits.judge(&total(989, 10, 11))), Verdict::Fail);
        assert_eq!(worst(&limits.judge(&Interval::default())), Verdict::Inconclusive);
        assert_eq!(total(989, 10, 11).response().len(), 1000);
    }

    #[test]
    fn a_generator_that_sends_less_than_it_planned_is_invalid() {
        let mut late = total(9_900, 10, 0);
        late.counts.planned = 10_000;
        assert_eq!(sending(&late).verdict, Verdict::Pass);
        late.counts.planned = 10_001;
        assert_eq!(sending(&late).verdict, Verdict::Invalid);
        assert_eq!(sending(&Interval::default()).verdict, Verdict::Invalid, "nothing was sent");
    }

    /// A webhook whose answers are all fast failures does not pass.
    #[test]
    fn a_webhook_that_never_answers_rightly_passes_nothing() {
        assert_eq!(answered(&total(0, 10, 1)).unwrap().verdict, Verdict::Inconclusive);
        assert_eq!(answered(&total(1, 10, 10_000)), None);
        assert_eq!(answered(&Interval::default()), None, "nothing was sent, which is told elsewhere");
    }

    #[test]
    fn shares_say_what_to_write() {
        assert_eq!("0.1%".parse(), Ok(Percent(0.1)));
        for text in ["0.1", "101%", "-1%", "NaN%", "x%"] {
            let error = text.parse::<Percent>().unwrap_err();
            assert!(error.contains("for example `0.1%`"), "{error}");
        }
    }
}
