//! `events.reported`: how many observations the witness reported.

use crate::budgets::AtLeast;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{EventCounts, Record};
use crate::words::{count, counted};

pub(super) struct Reported;

impl Rule for Reported {
    const EXAMPLE: Option<&'static str> = Some("{min: 1}");
    const WORD: Option<Word> = Some(Word::Missed);

    fn judge(record: &Record, counts: &EventCounts, limit: &AtLeast, findings: &mut Findings) {
        let (reported, limit) = (counts.observations, limit.min);
        let verdict = match () {
            () if reported >= limit => Verdict::Pass,
            () if record.finished() => Verdict::Fail,
            () => Verdict::Inconclusive,
        };
        let text = format!("the witness reported {}.", counted(reported, "observation"));
        findings.push(Name::of::<Self>(), verdict, count(reported), format!("at least {}", count(limit)), text);
    }
}
