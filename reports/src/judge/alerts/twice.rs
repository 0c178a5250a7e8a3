//! `alerts.twice`: alerts beyond one for a decision.

use super::{AtMost, sum};
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{AlertsRow, Record};

pub(super) struct Twice;

impl Rule for Twice {
    const WORD: Option<Word> = Some(Word::AlertTwice);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, rows: &Vec<&AlertsRow>, limit: &u64, findings: &mut Findings) {
        let at_most = AtMost {
            observed: sum(rows, |row| row.twice),
            limit: *limit,
            of: sum(rows, |row| row.told),
            among: "alert",
            what: ("alert was a duplicate", "alerts were duplicates"),
            sort: "twice",
        };
        at_most.judge(rows, Name::of::<Self>(), findings);
    }
}
