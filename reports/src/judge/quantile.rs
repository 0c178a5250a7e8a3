//! Limits on quantiles of a latency, measured from the planned start of a call. Failed calls have a latency too, so
//! that a subject that fails fast does not look fast.

use units::Span;

use super::rule::{Findings, Name, Verdict};
use crate::record::{Phase, Record, quantile_us, samples_needed};
use crate::statistics::hlog::Histogram;
use crate::words::{count, counted, micros};

pub(super) struct Measured {
    /// The tag of the latency's histogram.
    pub tag: &'static str,
    /// The name of one measured call, for sentences in findings.
    pub one: &'static str,
}

/// Builds a rule for each quantile of a latency from its name, key, text and parts per thousand.
macro_rules! quantiles {
    ($section:literal, $facts:ty, $measured:expr; $($name:ident = $key:literal, $words:literal, $parts_per_thousand:literal;)*) => {$(
        #[doc = concat!("`", $section, ".", $key, "`.")]
        pub(super) struct $name;

        impl $crate::judge::rule::Rule for $name {
            const WORD: Option<$crate::judge::Word> = Some($crate::judge::Word::Slow);

            fn judge(
                record: &$crate::record::Record,
                _: &$facts,
                limit: &units::Span,
                findings: &mut $crate::judge::rule::Findings,
            ) {
                let (name, quantile) = ($crate::judge::rule::Name::of::<Self>(), ($words, $parts_per_thousand));
                $crate::judge::quantile::judge(record, findings, name, &$measured, quantile, *limit);
            }
        }
    )*};
}
pub(super) use quantiles;

pub(super) fn judge(
    record: &Record,
    findings: &mut Findings,
    name: Name,
    measured: &Measured,
    (words, parts_per_thousand): (&str, u64),
    limit: Span,
) {
    let steady = record.latency.in_phase(measured.tag, Phase::Steady);
    let n = steady.map_or(0, Histogram::len);
    let Some(value_us) = steady.and_then(|steady| quantile_us(steady, parts_per_thousand)) else {
        let needed = samples_needed(parts_per_thousand);
        let text = format!(
            "the {words} needs {} {}s in the steady phase, but there were {}: {} more would decide it.",
            count(needed),
            measured.one,
            count(n),
            count(needed - n)
        );
        findings.push(name, Verdict::Inconclusive, format!("{} samples", count(n)), limit.to_string(), text);
        return;
    };
    let broken = u128::from(value_us) > limit.0.as_micros();
    let text = format!(
        "the {words} of the response time over {} in the steady phase is {}, {} the limit of {limit}.",
        counted(n, measured.one),
        micros(value_us),
        if broken { "over" } else { "within" }
    );
    let verdict = if broken { Verdict::Fail } else { Verdict::Pass };
    let found = findings.push(name, verdict, micros(value_us), limit.to_string(), text);
    found.used(value_us as f64, limit.0.as_micros() as f64);
}
