//! `memory.ceiling`, `descriptors.ceiling`, `threads.ceiling`: the most in any sample.

use units::Bytes;

use super::{subject, unsampled};
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{Process, Record};
use crate::words::{bytes, count, millis};

/// `memory.ceiling`.
pub(super) struct Memory;

impl Rule for Memory {
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Bytes, findings: &mut Findings) {
        judge_ceiling(record, findings, Name::of::<Self>(), "resident set", limit.0, bytes, |p| p.rss_bytes);
    }
}

/// `descriptors.ceiling`.
pub(super) struct Descriptors;

impl Rule for Descriptors {
    const WORD: Option<Word> = Some(Word::Descriptors);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let (name, what) = (Name::of::<Self>(), "number of open descriptors");
        judge_ceiling(record, findings, name, what, *limit, count, |p| p.fds.total());
    }
}

/// `threads.ceiling`.
pub(super) struct Threads;

impl Rule for Threads {
    const WORD: Option<Word> = Some(Word::Threads);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        judge_ceiling(record, findings, Name::of::<Self>(), "number of threads", *limit, count, |p| p.threads);
    }
}

fn judge_ceiling(
    record: &Record,
    findings: &mut Findings,
    name: Name,
    what: &str,
    ceiling: u64,
    words: fn(u64) -> String,
    read: impl Fn(&Process) -> u64,
) {
    // The first time that it was reached.
    let values = subject(record).map(|(t_ms, process)| (read(&process), t_ms));
    let Some((largest, t_ms)) = values.max_by_key(|(value, t_ms)| (*value, std::cmp::Reverse(*t_ms))) else {
        let why = unsampled(record).unwrap_or_else(|| "was never sampled.".to_owned());
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
