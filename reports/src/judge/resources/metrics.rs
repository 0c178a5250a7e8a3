//! `metrics.*`: limits on any series of the subject's own metrics.
//!
//! Owns the mapping from the name of a series of metrics to the values in the record. Growth of a series is decided as
//! for memory.

use std::collections::BTreeMap;

use units::Rate;

use super::growth::amount::Amount;
use super::growth::decide::{Limit, decide, size_of_count};
use super::growth::{Axis, judge_growth};
use crate::budgets::OwnSeries;
use crate::judge::rule::{Findings, Name, Record, Rule, Section, Verdict, Word, section};
use crate::statistics::quantile;
use crate::words::{millis, three_digits};

/// The smallest scatter that is assumed for a count, because a count that does not move in a quiet run is still not
/// constant. For a series with smaller values, a fraction of the values is assumed.
const SIGMA_LEAST: f64 = 0.5;
const SIGMA_SHARE_LEAST: f64 = 0.01;
const SECONDS_PER_HOUR: f64 = 3600.0;

section! {
    OwnSeries as "metrics", judge "resources", facts<'a> &'a str;
    ceiling "ceiling": f64 = Ceiling,
    growth "growth": Rate = Growing,
    growth_per_object "growthPerObject": f64 = PerObject,
    growth_per_request "growthPerRequest": f64 = PerRequest,
}

/// Judges each series of the subject's metrics by its name and labels.
pub(super) fn judge(record: &Record, series: &BTreeMap<String, OwnSeries>, findings: &mut Findings) {
    for (name, limits) in series {
        limits.judge_each(record, &name.as_str(), findings);
    }
}

pub(super) struct Ceiling;

impl Rule for Ceiling {
    const WORD: Option<Word> = Some(Word::Metrics);

    fn judge(record: &Record, series: &&str, limit: &f64, findings: &mut Findings) {
        let budget = Name::of::<Self>().below(series);
        let largest = values(record, series).max_by(|one, other| one.1.total_cmp(&other.1));
        let most = three_digits(*limit);
        let Some((t_ms, value)) = largest else {
            findings.push(budget, Verdict::Inconclusive, "never read", most, never(record, series));
            return;
        };
        let (verdict, words) = if value > *limit { (Verdict::Fail, "over") } else { (Verdict::Pass, "within") };
        let shown = three_digits(value);
        let text = format!("`{series}` reached {shown} at {}, {words} the ceiling of {most}.", millis(t_ms));
        findings.push(budget, verdict, shown, most, text).used(value, *limit);
    }
}

pub(super) struct Growing;

impl Rule for Growing {
    const WORD: Option<Word> = Some(Word::Metrics);

    fn judge(record: &Record, series: &&str, limit: &Rate, findings: &mut Findings) {
        let most = limit.as_per_second() * SECONDS_PER_HOUR;
        let limit = Limit { most, text: limit.to_string(), axis: Axis::Hours };
        grows(record, findings, Name::of::<Self>(), series, &limit);
    }
}

pub(super) struct PerObject;

impl Rule for PerObject {
    const WORD: Option<Word> = Some(Word::Metrics);

    fn judge(record: &Record, series: &&str, limit: &f64, findings: &mut Findings) {
        let text = format!("{}/object", three_digits(*limit));
        grows(record, findings, Name::of::<Self>(), series, &Limit { most: *limit, text, axis: Axis::Objects });
    }
}

pub(super) struct PerRequest;

impl Rule for PerRequest {
    const WORD: Option<Word> = Some(Word::Metrics);

    fn judge(record: &Record, series: &&str, limit: &f64, findings: &mut Findings) {
        let text = format!("{}/request", three_digits(*limit));
        grows(record, findings, Name::of::<Self>(), series, &Limit { most: *limit, text, axis: Axis::Requests });
    }
}

fn grows(record: &Record, findings: &mut Findings, name: Name, series: &str, limit: &Limit) {
    let budget = name.below(series);
    if values(record, series).next().is_none() {
        findings.push(budget, Verdict::Inconclusive, "never read", limit.text.clone(), never(record, series));
        return;
    }
    let sizes: Vec<f64> = values(record, series).map(|(_, value)| value.abs()).collect();
    let sigma_least = (SIGMA_SHARE_LEAST * quantile::median(&sizes)).min(SIGMA_LEAST);
    let amount = Amount::of(record, format!("`{series}`"), (sigma_least, size_of_count), values(record, series));
    judge_growth(findings, budget, limit, decide(record, limit, &amount));
}

fn values<'a>(record: &'a Record, series: &'a str) -> impl Iterator<Item = (u64, f64)> + 'a {
    record.metrics.iter().filter_map(move |row| Some((row.t_ms, *row.series.get(series)?)))
}

fn never(record: &Record, series: &str) -> String {
    let Some(plan) = &record.manifest.subject.metrics else {
        return format!(
            "`{series}` was never read: the scenario has no address of metrics; write `subject: {{metrics: URL}}`."
        );
    };
    let failed = record.metrics.iter().find_map(|row| row.error.as_deref());
    let why = failed.map_or_else(
        || "the page has no such series, or none with these labels".to_owned(),
        |error| format!("the page could not be read: {error}"),
    );
    format!("`{series}` was never read from {}: {why}.", plan.url)
}

#[cfg(test)]
mod tests {
    use crate::example::{Example, Judged as _};
    use crate::judge::{Finding, Verdict};

    fn found(limits: &str, queue: impl Fn(u64) -> f64) -> Vec<Finding> {
        let mut example = Example::clean();
        example.tell_metrics(|_| 1 << 20, queue);
        judgement_of(&mut example, limits)
    }

    fn judgement_of(example: &mut Example, limits: &str) -> Vec<Finding> {
        example.manifest.budgets = serde_json::from_str(&format!(r#"{{"metrics": {{"queue": {limits}}}}}"#)).unwrap();
        let judgement = example.judged();
        judgement.findings.into_iter().filter(|finding| finding.budget.starts_with("metrics.")).collect()
    }

    fn wobble(second: u64) -> f64 {
        (second * 11 % 13) as f64
    }

    #[test]
    fn each_limit_passes_and_fails() {
        let limits = [
            (r#"{"growth": "5000/h"}"#, "metrics.growth.queue"),
            (r#"{"growthPerObject": 0.15}"#, "metrics.growthPerObject.queue"),
            (r#"{"growthPerRequest": 0.007}"#, "metrics.growthPerRequest.queue"),
            (r#"{"ceiling": 20}"#, "metrics.ceiling.queue"),
        ];
        for (limit, budget) in limits {
            let clean = found(limit, wobble);
            assert_eq!(
                (clean.len(), clean[0].budget.as_str(), clean[0].verdict),
                (1, budget, Verdict::Pass),
                "{clean:?}"
            );
            let grown = found(limit, |second| wobble(second) + second as f64 * 3.0);
            assert_eq!(grown[0].verdict, Verdict::Fail, "{grown:?}");
        }
    }

    /// A constant series has no noise, so a limit on its growth passes at once.
    #[test]
    fn a_series_that_never_moves_passes() {
        let still = found(r#"{"growth": "1000/h"}"#, |_| 0.0);
        assert_eq!(still[0].verdict, Verdict::Pass, "{still:?}");
    }

    /// The finding of a limit on growth, if the metrics page was not read in `gaps`.
    fn unread(queue: impl Fn(u64) -> f64, gaps: &[std::ops::Range<u64>]) -> Finding {
        let mut example = Example::clean();
        example.tell_metrics(|_| 1 << 20, queue);
        example.metrics.retain(|row| !gaps.iter().any(|gap| gap.contains(&(row.t_ms / 1000))));
        judgement_of(&mut example, r#"{"growth": "5000/h"}"#).remove(0)
    }

    /// Gaps of some seconds, in which a busy machine delays reading of the metrics page, leave no budget undecided.
    #[test]
    fn some_seconds_without_a_reading_are_bridged() {
        let (short, long, two) = (60..64, 60..70, [40..47, 90..97]);
        for gaps in [std::slice::from_ref(&short), std::slice::from_ref(&long), &two] {
            let clean = unread(wobble, gaps);
            assert_eq!(clean.verdict, Verdict::Pass, "{gaps:?}: {clean:?}");
            assert!(clean.text.contains("are bridged."), "{clean:?}");
            let grown = unread(|second| wobble(second) + second as f64 * 3.0, gaps);
            assert_eq!(grown.verdict, Verdict::Fail, "{gaps:?}: {grown:?}");
        }
    }

    /// Gaps in reading the metrics page that are too long to bridge prevent a pass. Growth across such gaps still
    /// breaks the budget.
    #[test]
    fn what_grew_in_spite_of_holes_is_said() {
        let gaps = [30..47, 60..77, 90..107, 118..135];
        let clean = unread(wobble, &gaps);
        assert_eq!(clean.verdict, Verdict::Inconclusive, "{clean:?}");
        let grown = unread(|second| wobble(second) + second as f64 * 3.0, &gaps[..3]);
        assert_eq!(grown.verdict, Verdict::Fail, "{grown:?}");
        assert!(grown.text.ends_with("There are no samples for 18 s."), "{grown:?}");
    }

    #[test]
    fn what_was_never_read_is_undecided_and_says_why() {
        let mut example = Example::clean();
        let unnamed = judgement_of(&mut example, r#"{"ceiling": 1, "growth": "1/h"}"#);
        for finding in &unnamed {
            assert_eq!(finding.verdict, Verdict::Inconclusive, "{finding:?}");
            assert!(finding.text.contains("write `subject: {metrics: URL}`"), "{finding:?}");
        }
        example.tell_metrics(|_| 1, |_| 0.0);
        example.metrics.iter_mut().for_each(|row| row.series.clear());
        assert!(judgement_of(&mut example, r#"{"ceiling": 1}"#)[0].text.contains("the page has no such series"));
        for row in &mut example.metrics {
            row.error = Some("it answers 404".into());
        }
        assert!(
            judgement_of(&mut example, r#"{"growth": "1/h"}"#)[0].text.contains("could not be read: it answers 404")
        );
    }
}
