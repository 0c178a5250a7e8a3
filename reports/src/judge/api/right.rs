//! `api.wrong`, `api.lost`, `api.errors`: the contents of answers, and missing answers.

use super::{AtMost, sum};
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{CallsRow, Record};

/// `api.wrong`.
pub(super) struct Wrong;

impl Rule for Wrong {
    const WORD: Option<Word> = Some(Word::StaleAnswer);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, rows: &Vec<&CallsRow>, limit: &u64, findings: &mut Findings) {
        let at_most = AtMost {
            rows,
            observed: sum(rows, |row| row.wrong),
            limit: *limit,
            of: sum(rows, |row| row.judged),
            unjudged: sum(rows, |row| row.unjudged),
            what: ("answer gave a count that never existed", "answers gave a count that never existed"),
            among: "told count",
            sorts: &["wrong"],
        };
        at_most.judge(Name::of::<Self>(), findings);
    }
}

/// `api.lost`.
pub(super) struct Lost;

impl Rule for Lost {
    const WORD: Option<Word> = Some(Word::LostUpdate);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, rows: &Vec<&CallsRow>, limit: &u64, findings: &mut Findings) {
        // A scenario that only reads can lose no count.
        let set = sum(rows, |row| row.set);
        if set == 0 && sum(rows, |row| row.read) > 0 {
            return;
        }
        let at_most = AtMost {
            rows,
            observed: sum(rows, |row| row.lost),
            limit: *limit,
            of: set,
            unjudged: sum(rows, |row| row.unjudged),
            what: (
                "count that the API confirmed was never committed",
                "counts that the API confirmed were never committed",
            ),
            among: "write",
            sorts: &["lost"],
        };
        at_most.judge(Name::of::<Self>(), findings);
    }
}

/// `api.errors`.
pub(super) struct Errors;

impl Rule for Errors {
    const WORD: Option<Word> = Some(Word::NoAnswer);

    fn judge(_: &Record, rows: &Vec<&CallsRow>, limit: &u64, findings: &mut Findings) {
        let errors = sum(rows, |row| row.errors);
        let at_most = AtMost {
            rows,
            observed: errors,
            limit: *limit,
            of: errors + sum(rows, |row| row.read) + sum(rows, |row| row.set),
            unjudged: 0,
            what: ("call had no valid answer", "calls had no valid answer"),
            among: "call",
            sorts: &["http error", "timeout", "connect", "tls", "invalid response"],
        };
        at_most.judge(Name::of::<Self>(), findings);
    }
}
