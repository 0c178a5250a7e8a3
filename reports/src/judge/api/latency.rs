//! `api.p50`, `api.p99`: how long reads take, from the planned start.

use units::Span;

use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{CallsRow, Phase, Record, quantile_us, samples_needed, tag};
use crate::words::{count, counted, micros};

/// A rule for each quantile: its name, key, words and parts per thousand.
macro_rules! quantiles {
    ($($name:ident = $key:literal, $words:literal, $parts_per_thousand:literal;)*) => {$(
        #[doc = concat!("`api.", $key, "`.")]
        pub(super) struct $name;

        impl Rule for $name {
            const DOC: &'static str =
                concat!("The ", $words, " of the time of reads from the planned start, in the steady phase.");
            const WORD: Option<Word> = Some(Word::Slow);

            fn judge(record: &Record, _: &Vec<&CallsRow>, limit: &Span, findings: &mut Findings) {
                judge(record, findings, Name::of::<Self>(), $words, $parts_per_thousand, *limit);
            }
        }
    )*};
}

quantiles! {
    P50 = "p50", "median", 500;
    P99 = "p99", "99th percentile", 990;
}

fn judge(record: &Record, findings: &mut Findings, name: Name, words: &str, parts_per_thousand: u64, limit: Span) {
    let steady = record.latency.in_phase(tag::CALLS_READ, Phase::Steady);
    let n = steady.map_or(0, hdrhistogram::Histogram::len);
    let Some(value_us) = steady.and_then(|steady| quantile_us(steady, parts_per_thousand)) else {
        let needed = samples_needed(parts_per_thousand);
        let text = format!(
            "the {words} needs {} reads in the steady phase and there were {}: {} more would decide it.",
            count(needed),
            count(n),
            count(needed - n)
        );
        findings.push(name, Verdict::Inconclusive, format!("{} samples", count(n)), limit.to_string(), text);
        return;
    };
    let broken = u128::from(value_us) > limit.0.as_micros();
    let text = format!(
        "the {words} of the response time over {} in the steady phase is {}, {} the limit of {limit}.",
        counted(n, "read"),
        micros(value_us),
        if broken { "over" } else { "within" }
    );
    let verdict = if broken { Verdict::Fail } else { Verdict::Pass };
    let found = findings.push(name, verdict, micros(value_us), limit.to_string(), text);
    found.used(value_us as f64, limit.0.as_micros() as f64);
}
