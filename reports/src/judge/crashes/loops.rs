//! `crashes.loops`: how often the subject entered a crash loop.

use crate::judge::rule::{Findings, Name, Record, Rule, Verdict, Word};
use crate::words::{count, counted, millis};

pub(super) struct Loops;

impl Rule for Loops {
    const WORD: Option<Word> = Some(Word::Crashed);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let loops = record.crashes.iter().filter(|row| row.in_a_row == 2).count() as u64;
        let text = worst(record).unwrap_or_else(|| "the subject was in no crash loop.".to_owned());
        let verdict = if loops > *limit { Verdict::Fail } else { Verdict::Pass };
        findings.push(Name::of::<Self>(), verdict, counted(loops, "loop"), count(*limit), text);
    }
}

/// The longest loop in a sentence; none if no process ended twice in a row.
pub(super) fn worst(record: &Record) -> Option<String> {
    let last = record.crashes.iter().max_by_key(|row| row.in_a_row).filter(|row| row.in_a_row > 1)?;
    let mut earlier = record.crashes.iter().rev().skip_while(|row| row.number > last.number);
    let first = earlier.find(|row| row.process == last.process && row.in_a_row == 1)?;
    let who = last.process.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
    Some(format!(
        "CrashLoopBackOff: the subject{who} ended {} in {}, and had to wait up to {} before it was started again.",
        counted(last.in_a_row, "time"),
        millis(last.t_ms.saturating_sub(first.t_ms)),
        millis(last.back_off_ms)
    ))
}
