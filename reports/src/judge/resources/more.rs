//! How many more of something there are at the end of the steady phase than at the end of the warm-up.

use super::{anew, unsampled};
use crate::judge::rule::Name;
use crate::judge::{Findings, Verdict};
use crate::record::{Phase, Record};
use crate::words::count;

/// Counts are compared over windows of at most this length, at the ends of warm-up and of the steady phase.
const WINDOW_MS: u64 = 30_000;
/// Samples of each second that a window needs for its median.
pub(super) const WINDOW_SAMPLES: usize = 3;
/// Rows of intervals that it needs: there is one every 5 s, and each is what was open just then.
pub(super) const WINDOW_ROWS: usize = 2;

/// The samples that are the medians of the two windows, by this count; none where a window has too few.
pub(super) fn ends<T: Copy, I: Iterator<Item = (u64, T)>>(
    record: &Record,
    samples: impl Fn() -> I,
    least: usize,
    read: impl Fn(&T) -> u64,
) -> Option<(T, T)> {
    let window = |phase: Phase| -> Option<T> {
        let of_phase: Vec<_> = samples().filter(|(t_ms, _)| record.phase_at(*t_ms) == phase).collect();
        let (first, last) = (of_phase.first()?.0, of_phase.last()?.0);
        let from = last.saturating_sub(WINDOW_MS.min((last - first) / 2));
        let mut tail: Vec<T> = of_phase.into_iter().filter(|(t, _)| *t >= from).map(|(_, sample)| sample).collect();
        tail.sort_by_key(&read);
        (tail.len() >= least).then(|| tail[tail.len() / 2])
    };
    Some((window(Phase::WarmUp)?, window(Phase::Steady)?))
}

/// There are too few samples.
pub(super) fn undecided(
    record: &Record,
    findings: &mut Findings,
    (name, what, limit): (Name, &str, u64),
    least: usize,
) {
    let text = match unsampled(record) {
        // Watches are counted by the control plane, whoever has the process.
        Some(why) if name.section != "openWatches" => format!("the number of {what} {why}"),
        _ => format!("{least} samples at the end of warm-up and of the steady phase would decide it."),
    };
    findings.push(name, Verdict::Inconclusive, "too few samples", count(limit), text);
}

/// Compares before and after with the limit.
pub(super) fn judge(
    findings: &mut Findings,
    name: Name,
    limit: u64,
    what: &str,
    (before, after): (u64, u64),
    parts: &str,
) {
    let grown = after.saturating_sub(before);
    let text =
        format!("{what} went from {before} at the end of warm-up to {after} at the end of the steady phase{parts}.");
    let verdict = if grown > limit { Verdict::Fail } else { Verdict::Pass };
    findings.push(name, verdict, count(grown), count(limit), text).used(grown as f64, limit as f64);
}

/// Judges a count of one subject: of one that was started anew, what it held before says nothing.
pub(super) fn judge_one<I: Iterator<Item = (u64, u64)>>(
    record: &Record,
    findings: &mut Findings,
    (name, what, limit): (Name, &str, u64),
    least: usize,
    samples: impl Fn() -> I,
) {
    if let Some((verdict, text)) = anew(record, findings) {
        findings.push(name, verdict, "restarted", count(limit), text);
        return;
    }
    match ends(record, samples, least, |count| *count) {
        Some(ends) => judge(findings, name, limit, what, ends, ""),
        None => undecided(record, findings, (name, what, limit), least),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;
    use crate::judge;

    /// The verdict of a budget for the clean example, spoilt.
    fn verdict(budget: &str, spoil: impl Fn(&mut Example)) -> Verdict {
        let mut example = Example::clean();
        example.manifest.budgets =
            serde_json::from_str(r#"{"threads": {"growth": 2}, "openWatches": {"growth": 2}}"#).unwrap();
        spoil(&mut example);
        let dir = tempfile::tempdir().unwrap();
        let judgement = judge::judge(&example.open(dir.path()));
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
    fn threads_pass_fail_are_undecided_and_invalid() {
        assert_eq!(verdict("threads.growth", |e| threads(e, 8)), Verdict::Pass);
        assert_eq!(verdict("threads.growth", |e| threads(e, 9)), Verdict::Fail);
        assert_eq!(verdict("threads.growth", |e| e.samples.truncate(20)), Verdict::Inconclusive);
        assert_eq!(verdict("threads.growth", again), Verdict::Invalid);
    }

    #[test]
    fn open_watches_pass_fail_are_undecided_and_invalid() {
        assert_eq!(verdict("openWatches.growth", |e| watches(e, 5)), Verdict::Pass);
        assert_eq!(verdict("openWatches.growth", |e| watches(e, 6)), Verdict::Fail);
        let uncounted = |e: &mut Example| e.intervals.iter_mut().for_each(|row| row.api.subject_open_watches = 0);
        assert_eq!(verdict("openWatches.growth", uncounted), Verdict::Inconclusive);
        assert_eq!(verdict("openWatches.growth", again), Verdict::Invalid);
    }
}
