//! `descriptors.growth`: whether ever more descriptors are open.

use super::{Descriptors, subject};
use crate::judge::rule::{Name, Rule};
use crate::judge::{Findings, Verdict, Word};
use crate::record::{Phase, Process, Record};
use crate::words::count;

/// Descriptors are compared over windows of at most this length, at the ends of warm-up and of the steady phase.
const WINDOW_MS: u64 = 30_000;
/// Samples that a window needs for its median.
const WINDOW_SAMPLES: usize = 3;

/// `descriptors.growth`.
pub(super) struct Growing;

impl Rule for Growing {
    type Section = Descriptors;
    type Limit = u64;
    const KEY: &'static str = "growth";
    const DOC: &'static str = "How many more at the end of the steady phase than at the end of the warm-up.";
    const WORD: Option<Word> = Some(Word::Descriptors);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        judge(record, *limit, findings);
    }
}

fn judge(record: &Record, limit: u64, findings: &mut Findings) {
    let window = |phase: Phase| -> Option<Process> {
        let of_phase: Vec<_> = subject(record).filter(|(t_ms, _)| record.phase_at(*t_ms) == phase).collect();
        let (first, last) = (of_phase.first()?.0, of_phase.last()?.0);
        let from = last.saturating_sub(WINDOW_MS.min((last - first) / 2));
        let mut tail: Vec<Process> = of_phase.into_iter().filter(|(t, _)| *t >= from).map(|(_, p)| p).collect();
        tail.sort_by_key(|process| process.fds.total());
        (tail.len() >= WINDOW_SAMPLES).then(|| tail[tail.len() / 2])
    };
    let (Some(before), Some(after)) = (window(Phase::WarmUp), window(Phase::Steady)) else {
        let text = format!("{WINDOW_SAMPLES} samples at the end of warm-up and of the steady phase would decide it.");
        findings.push(Name::of::<Growing>(), Verdict::Inconclusive, "too few samples", count(limit), text);
        return;
    };
    let grown = after.fds.total().saturating_sub(before.fds.total());
    let classes = [
        ("sockets", before.fds.socket, after.fds.socket),
        ("files", before.fds.file, after.fds.file),
        ("pipes", before.fds.pipe, after.fds.pipe),
        ("others", before.fds.other, after.fds.other),
    ];
    let parts: Vec<String> = classes
        .iter()
        .filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| format!("{name} {before} → {after}"))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let text = format!(
        "open descriptors went from {} at the end of warm-up to {} at the end of the steady phase{parts}.",
        before.fds.total(),
        after.fds.total()
    );
    let verdict = if grown > limit { Verdict::Fail } else { Verdict::Pass };
    findings.push(Name::of::<Growing>(), verdict, count(grown), count(limit), text);
}
