//! `memory.ceiling`, `descriptors.ceiling`, `threads.ceiling`, `openWatches.ceiling`: the largest value of the subject.

use units::Bytes;

use super::{counted, subject, uncounted, unsampled};
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::Record;
use crate::words::{bytes, count, millis};

pub(super) struct Memory;

impl Rule for Memory {
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Bytes, findings: &mut Findings) {
        let of = Of { name: Name::of::<Self>(), what: "resident set", words: bytes, unknown: unsampled };
        judge_ceiling(record, findings, of, limit.0, subject(record).map(|(t_ms, p)| (p.rss_bytes, t_ms)));
    }
}

pub(super) struct Descriptors;

impl Rule for Descriptors {
    const WORD: Option<Word> = Some(Word::Descriptors);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let of = Of { name: Name::of::<Self>(), what: "number of open descriptors", words: count, unknown: uncounted };
        judge_ceiling(record, findings, of, *limit, counted(record).map(|(t_ms, p)| (p.fds.total(), t_ms)));
    }
}

pub(super) struct Threads;

impl Rule for Threads {
    const WORD: Option<Word> = Some(Word::Threads);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let of = Of { name: Name::of::<Self>(), what: "number of threads", words: count, unknown: uncounted };
        judge_ceiling(record, findings, of, *limit, counted(record).map(|(t_ms, p)| (p.threads, t_ms)));
    }
}

pub(super) struct Watches;

impl Rule for Watches {
    const WORD: Option<Word> = Some(Word::WatchLeak);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let unknown = |_: &Record| Some("is not known: this control plane does not count them.".to_owned());
        let of = Of { name: Name::of::<Self>(), what: "number of open watches", words: count, unknown };
        // If they are not counted, no row has any.
        let is_known = record.intervals.iter().any(|row| row.api.subject_open_watches > 0);
        let rows = record.intervals.iter().filter(|_| is_known);
        judge_ceiling(record, findings, of, *limit, rows.map(|row| (row.api.subject_open_watches, row.end_ms)));
    }
}

/// A value of the subject with a ceiling, and how the value is read and shown.
struct Of {
    name: Name,
    what: &'static str,
    words: fn(u64) -> String,
    /// Why the value is unknown; none if it is known.
    unknown: fn(&Record) -> Option<String>,
}

fn judge_ceiling(
    record: &Record,
    findings: &mut Findings,
    Of { name, what, words, unknown }: Of,
    ceiling: u64,
    values: impl Iterator<Item = (u64, u64)>,
) {
    // The first time at which it was reached.
    let Some((largest, t_ms)) = values.max_by_key(|(value, t_ms)| (*value, std::cmp::Reverse(*t_ms))) else {
        let why = unknown(record).unwrap_or_else(|| "was never sampled.".to_owned());
        let text = format!("the {what} {why}");
        findings.push(name, Verdict::Inconclusive, "no samples", words(ceiling), text);
        return;
    };
    let broken = largest > ceiling;
    let text = format!(
        "the {what} reached {} at {}, {} the ceiling of {}.",
        words(largest),
        millis(t_ms),
        if broken { "over" } else { "within" },
        words(ceiling)
    );
    let verdict = if broken { Verdict::Fail } else { Verdict::Pass };
    findings.push(name, verdict, words(largest), words(ceiling), text).used(largest as f64, ceiling as f64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Example, Judged as _};

    #[test]
    fn watches_beyond_the_ceiling_fail_and_uncounted_ones_decide_nothing() {
        let of = |open: u64| {
            let mut example = Example::clean();
            example.manifest.budgets = serde_json::from_str(r#"{"openWatches": {"ceiling": 3}}"#).unwrap();
            for row in &mut example.intervals {
                row.api.subject_open_watches = open;
            }
            let judgement = example.judged();
            judgement.findings.iter().find(|finding| finding.budget == "openWatches.ceiling").unwrap().verdict
        };
        assert_eq!((of(3), of(4), of(0)), (Verdict::Pass, Verdict::Fail, Verdict::Inconclusive));
    }

    /// Kubelets report memory but no descriptors, so a ceiling on descriptors is undecided for a subject in a cluster.
    #[test]
    fn what_kubelets_tell_has_a_ceiling_of_memory_and_no_other() {
        let mut example = Example::clean();
        let budgets = r#"{"memory": {"ceiling": "96MiB"}, "descriptors": {"ceiling": 200}, "threads": {"ceiling": 9}}"#;
        example.manifest.budgets = serde_json::from_str(budgets).unwrap();
        for process in example.samples.iter_mut().filter_map(|sample| sample.subject.as_mut()) {
            (process.told, process.fds, process.threads) = (true, record::Fds::default(), 0);
        }
        let judgement = example.judged();
        let of = |budget: &str| judgement.findings.iter().find(|finding| finding.budget == budget).unwrap();
        assert_eq!(of("memory.ceiling").verdict, Verdict::Pass);
        for budget in ["descriptors.ceiling", "threads.ceiling"] {
            assert_eq!(of(budget).verdict, Verdict::Inconclusive, "{budget}");
            assert!(of(budget).text.contains("kubelets report only memory and processor time"), "{}", of(budget).text);
        }
    }
}
