//! Judges how much a count grew from the end of the warm-up to the end of the steady phase.
//!
//! A count that goes up and down does not grow: the budget is broken only if the count at the end is above the usual
//! high counts of the first third. If the subject was started again, the time of each process is judged by itself.

use super::{Life, anew, lives, uncounted};
use crate::judge::rule::{Findings, Name, Verdict};
use crate::record::{Phase, Record};
use crate::statistics::quantile;
use crate::words::{count, millis};

/// Counts are compared over time windows of at most this length, at the end of the warm-up and at the end of the steady
/// phase.
const WINDOW_MS: u64 = 30_000;
/// Minimum number of samples in a time window for a median; there is one sample a second.
pub(super) const WINDOW_SAMPLES: usize = 3;
/// Minimum number of intervals in a time window. There is one interval every 5 s, and each has the number of open
/// watches at its end.
pub(super) const WINDOW_ROWS: usize = 2;
/// The quantiles between which a count is usual: without the highest and the lowest tenth.
const HIGH: f64 = 0.9;
const LOW: f64 = 0.1;
/// If a process ran for less than this fraction of the planned time, the budget cannot pass.
const PLANNED_LEAST: f64 = 0.9;

/// The counts at the start and at the end of the time of one process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends<T> {
    /// The samples with the median count: `before` of the first time window, `after` of the last.
    pub before: T,
    pub after: T,
    /// Quantiles of the count: usual high and low counts of the first third of the time, low counts of the last time
    /// window, and low counts of the last third.
    high_first: f64,
    low_first: f64,
    low_after: f64,
    low_last: f64,
}

/// A count to be judged, with its texts.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub name: Name,
    pub what: &'a str,
    pub limit: u64,
    /// Minimum number of samples of the count in a time window.
    pub least: usize,
}

/// The samples with the median count of the first and last time window; none if one of them has too few samples.
/// `samples` are the samples of warm-up and steady phase.
pub(super) fn ends<T: Copy>(
    record: &Record,
    life: Life,
    samples: &[(u64, T)],
    least: usize,
    read: impl Fn(&T) -> u64,
) -> Option<Ends<T>> {
    let of_phase = |phase: Phase| -> Vec<(u64, T)> {
        let within = samples.iter().filter(|(t_ms, _)| (life.from_ms..=life.to_ms).contains(t_ms));
        within.filter(|(t_ms, _)| record.phase_at(*t_ms) == phase).copied().collect()
    };
    let (warm_up, steady) = (of_phase(Phase::WarmUp), of_phase(Phase::Steady));
    let tail = |rows: &[(u64, T)]| -> Vec<T> {
        let Some((first, last)) = rows.first().zip(rows.last()).map(|(first, last)| (first.0, last.0)) else {
            return Vec::new();
        };
        let from = last.saturating_sub(WINDOW_MS.min((last - first) / 2));
        rows.iter().filter(|(t_ms, _)| *t_ms >= from).map(|(_, sample)| *sample).collect()
    };
    let third = steady.len() / 3;
    let (first, last) = (&steady[..third], &steady[steady.len() - third..]);
    let mut before = tail(&warm_up);
    // A warm-up that is too short for a window continues into the steady phase.
    let missing = least.saturating_sub(before.len());
    before.extend(first.iter().take(missing).map(|(_, sample)| *sample));
    let mut after = tail(&steady);
    if before.len() < least || after.len() < least {
        return None;
    }
    let numbers = |rows: &mut dyn Iterator<Item = T>| -> Vec<f64> {
        let mut numbers: Vec<f64> = rows.map(|sample| read(&sample) as f64).collect();
        numbers.sort_by(f64::total_cmp);
        numbers
    };
    let early = numbers(&mut before.iter().copied().chain(first.iter().map(|(_, sample)| *sample)));
    let late = numbers(&mut after.iter().copied());
    let rest = numbers(&mut last.iter().map(|(_, sample)| *sample));
    before.sort_by_key(&read);
    after.sort_by_key(&read);
    Some(Ends {
        before: before[before.len() / 2],
        after: after[after.len() / 2],
        high_first: quantile::of_sorted(&early, HIGH),
        low_first: quantile::of_sorted(&early, LOW),
        low_after: quantile::of_sorted(&late, LOW),
        low_last: quantile::of_sorted(&rest, LOW),
    })
}

/// Judges a count of the subject, separately for each process that ran. `parts` returns the kinds that grew (such as
/// kinds of descriptors), as the end of a sentence.
pub(super) fn judge<T: Copy>(
    record: &Record,
    findings: &mut Findings,
    of: Of<'_>,
    samples: &[(u64, T)],
    read: impl Fn(&T) -> u64,
    parts: impl Fn(&Ends<T>) -> String,
) {
    let all = lives(record);
    let found = all.iter().filter_map(|life| Some((*life, ends(record, *life, samples, of.least, &read)?)));
    let told: Vec<(Life, Judged)> = found
        .map(|(life, ends)| (life, Judged::of(&of, &ends, (read(&ends.before), read(&ends.after)), &parts(&ends))))
        .collect();
    let Some((_, worst)) = told.iter().max_by_key(|(_, told)| (told.verdict == Verdict::Fail, told.grown)) else {
        undecided(record, findings, &of);
        return;
    };
    let restart = anew(record);
    let whole = |life: &Life| {
        let planned_ms = record.manifest.phases.steady_ms as f64;
        let end_ms = life.to_ms.min(record.length_ms());
        end_ms.saturating_sub(life.from_ms) as f64 >= PLANNED_LEAST * planned_ms
    };
    let (verdict, observed, text) = match (restart, worst.verdict) {
        (Some(t_ms), Verdict::Fail) => (
            Verdict::Fail,
            count(worst.grown),
            format!("{} The subject was restarted at {}.", worst.text, millis(t_ms)),
        ),
        (Some(t_ms), _) if !told.iter().any(|(life, _)| whole(life)) => {
            let text = format!("growth is not judged: the subject was restarted at {}. {}", millis(t_ms), worst.text);
            (Verdict::Inconclusive, "restarted".to_owned(), text)
        }
        (_, verdict) => (verdict, count(worst.grown), worst.text.clone()),
    };
    let limit = of.limit;
    findings.push(of.name, verdict, observed, count(limit), text).used(worst.grown as f64, limit as f64);
}

/// The judgement of a count in the time of one process.
struct Judged {
    verdict: Verdict,
    grown: u64,
    text: String,
}

impl Judged {
    fn of<T>(of: &Of<'_>, ends: &Ends<T>, (before, after): (u64, u64), parts: &str) -> Self {
        let (what, limit) = (of.what, of.limit as f64);
        let grown = after.saturating_sub(before);
        let went =
            format!("{what} went from {before} at the end of warm-up to {after} at the end of the steady phase{parts}");
        let swings = ends.low_after <= ends.high_first;
        let (verdict, text) = match () {
            () if grown <= of.limit => (Verdict::Pass, format!("{went}.")),
            () if !swings => (Verdict::Fail, format!("{went}.")),
            () if ends.low_last - ends.low_first > limit => {
                let text = format!(
                    "{went}. It swings: it already reached {:.0} in the first third. A longer run would show whether its lows rise \
                     further.",
                    ends.high_first
                );
                (Verdict::Inconclusive, text)
            }
            () => {
                let text = format!(
                    "{went}, and it swings: it already reached {:.0} in the first third, and its lows went from {:.0} to {:.0}.",
                    ends.high_first, ends.low_first, ends.low_last
                );
                (Verdict::Pass, text)
            }
        };
        Self { verdict, grown, text }
    }
}

/// Adds an undecided finding, because there are too few samples of the count.
fn undecided(record: &Record, findings: &mut Findings, of: &Of<'_>) {
    let Of { name, what, limit, least } = *of;
    let text = match uncounted(record) {
        // The control plane counts watches, whether or not the process can be sampled.
        Some(why) if name.section != "openWatches" => format!("the number of {what} {why}"),
        _ => format!("{least} samples at the beginning and at the end of the steady phase would decide it."),
    };
    findings.push(name, Verdict::Inconclusive, "too few samples", count(limit), text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Example, Judged as _};

    fn verdict(budget: &str, spoil: impl Fn(&mut Example)) -> Verdict {
        let mut example = Example::clean();
        example.manifest.budgets =
            serde_json::from_str(r#"{"threads": {"growth": 2}, "openWatches": {"growth": 2}}"#).unwrap();
        spoil(&mut example);
        let judgement = example.judged();
        judgement.findings.iter().find(|finding| finding.budget == budget).unwrap().verdict
    }

    fn threads(example: &mut Example, last: u64) {
        example.samples[100..].iter_mut().for_each(|sample| sample.subject.as_mut().unwrap().threads = last);
    }

    fn watches(example: &mut Example, last: u64) {
        example.intervals[20..].iter_mut().for_each(|row| row.api.subject_open_watches = last);
    }

    fn again(example: &mut Example) {
        example.samples[80..].iter_mut().for_each(|sample| sample.subject.as_mut().unwrap().starts = 2);
    }

    #[test]
    fn threads_pass_fail_and_are_undecided() {
        assert_eq!(verdict("threads.growth", |e| threads(e, 8)), Verdict::Pass);
        assert_eq!(verdict("threads.growth", |e| threads(e, 9)), Verdict::Fail);
        assert_eq!(verdict("threads.growth", |e| e.samples.truncate(20)), Verdict::Inconclusive);
        assert_eq!(verdict("threads.growth", again), Verdict::Inconclusive);
    }

    #[test]
    fn open_watches_pass_fail_and_are_undecided() {
        assert_eq!(verdict("openWatches.growth", |e| watches(e, 5)), Verdict::Pass);
        assert_eq!(verdict("openWatches.growth", |e| watches(e, 6)), Verdict::Fail);
        let uncounted = |e: &mut Example| e.intervals.iter_mut().for_each(|row| row.api.subject_open_watches = 0);
        assert_eq!(verdict("openWatches.growth", uncounted), Verdict::Inconclusive);
        assert_eq!(verdict("openWatches.growth", again), Verdict::Inconclusive);
    }

    /// Growth of a count before a restart of the subject breaks the budget too.
    #[test]
    fn each_life_is_judged_for_itself() {
        let leaks = |e: &mut Example| {
            for sample in &mut e.samples {
                let second = sample.t_ms / 1000;
                let subject = sample.subject.as_mut().unwrap();
                (subject.threads, subject.starts) = if second < 90 { (6 + second / 5, 1) } else { (6, 2) };
            }
        };
        assert_eq!(verdict("threads.growth", leaks), Verdict::Fail);
    }

    /// Connections that are opened and closed again are no leak, wherever the compared times are. If the low counts of
    /// connections rise, the budget is undecided, because they may be a leak. Rising low counts are a leak if even the
    /// low counts of the last time window are above the earlier high counts.
    #[test]
    fn a_count_that_swings_does_not_grow() {
        let swings = |half: u64, lows: fn(u64) -> u64| {
            verdict("threads.growth", move |e| {
                for sample in &mut e.samples {
                    let second = sample.t_ms / 1000;
                    sample.subject.as_mut().unwrap().threads = lows(second) + 20 * (second / half % 2);
                }
            })
        };
        // Every 35 s the whole last window is high, and the end of warm-up low; every 20 s the window has both.
        for half in [20, 35] {
            assert_eq!(swings(half, |_| 10), Verdict::Pass, "{half}");
            assert_eq!(swings(half, |second| 10 + second), Verdict::Fail, "{half}");
        }
        assert_eq!(swings(20, |second| 10 + second / 10), Verdict::Inconclusive);
        assert_eq!(swings(35, |second| 10 + second / 10), Verdict::Fail);
    }

    /// If the warm-up has only one interval, the first time window extends into the steady phase, and a run with some
    /// minutes of counts is decided.
    #[test]
    fn a_short_warm_up_goes_on_into_the_steady_phase() {
        let short = |last: u64| {
            verdict("openWatches.growth", move |e| {
                e.intervals.iter_mut().take(4).skip(1).for_each(|row| row.phase = Phase::Steady);
                e.manifest.phases.warm_up_ms = 5000;
                watches(e, last);
            })
        };
        assert_eq!(short(5), Verdict::Pass);
        assert_eq!(short(6), Verdict::Fail);
    }
}
