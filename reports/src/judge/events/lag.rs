//! `events.lagP99`: the lag of observations while no fault was active.

use units::Span;

use super::micros_of;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{EventCounts, Record, quantile_us, tag};
use crate::statistics::hlog::Histogram;
use crate::statistics::proportion::{Side, samples_when_none, side_of};
use crate::words::{count, micros};

/// `events.lagP99`.
pub(super) struct P99;

impl Rule for P99 {
    const WORD: Option<Word> = Some(Word::Late);

    fn judge(record: &Record, _: &EventCounts, limit: &Span, findings: &mut Findings) {
        judge(record, *limit, findings);
    }
}

fn judge(record: &Record, limit: Span, findings: &mut Findings) {
    let limit_us = micros_of(limit);
    let lag = record.latency.whole(tag::LAG);
    let n = lag.as_ref().map_or(0, Histogram::len);
    // Whole buckets: a value in the bucket of the limit counts as within it.
    let within = lag.as_ref().map_or(0, |lag| lag.count_between(0, limit_us));
    let beyond = n - within.min(n);
    let max_us = lag.as_ref().filter(|lag| !lag.is_empty()).map_or(0, Histogram::max);
    let p99_us = lag.as_ref().and_then(|lag| quantile_us(lag, 990));
    let observed = match p99_us {
        Some(p99_us) => micros(p99_us),
        None => format!("at most {}", micros(max_us)),
    };
    let share = format!("{} of {} observations took longer than {limit}", count(beyond), count(n));
    let (verdict, observed, text) = match side_of(beyond, n, 0.01) {
        Side::Below => {
            (Verdict::Pass, observed, format!("{share}; the 99th percentile of the lag is within the limit."))
        }
        Side::Above => {
            (Verdict::Fail, observed, format!("{share}, so the 99th percentile of the lag is over the limit."))
        }
        Side::Undecided => {
            let needed = samples_when_none(0.01);
            let observed = format!("{} samples", count(n));
            let more = if n < needed { format!("at least {} more", count(needed - n)) } else { "more".to_owned() };
            (
                Verdict::Inconclusive,
                observed,
                format!("{share}; {more} outside faults would decide the 99th percentile."),
            )
        }
    };
    let found = findings.push(Name::of::<P99>(), verdict, observed, limit.to_string(), text);
    found.used(p99_us.map_or(f64::NAN, |us| us as f64), limit_us as f64);
}
