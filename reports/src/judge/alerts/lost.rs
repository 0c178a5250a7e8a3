//! `alerts.lost`: decisions that were not reported to the receiver.

use super::{AtMost, sum};
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{AlertsRow, Record};

pub(super) struct Lost;

impl Rule for Lost {
    const WORD: Option<Word> = Some(Word::AlertLost);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, rows: &Vec<&AlertsRow>, limit: &u64, findings: &mut Findings) {
        let at_most = AtMost {
            observed: sum(rows, |row| row.lost),
            limit: *limit,
            of: sum(rows, |row| row.decided),
            among: "decision",
            what: ("decision reached no receiver", "decisions reached no receiver"),
            sort: "lost",
        };
        at_most.judge(rows, Name::of::<Self>(), findings);
    }
}
