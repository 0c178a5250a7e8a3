//! `api.letIn`: callers that must be refused and were not.

use super::{AtMost, sum};
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{CallsRow, Record};

pub(super) struct LetIn;

impl Rule for LetIn {
    const WORD: Option<Word> = Some(Word::LetIn);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, rows: &Vec<&CallsRow>, limit: &u64, findings: &mut Findings) {
        let let_in = sum(rows, |row| row.let_in);
        let of = let_in + sum(rows, |row| row.turned_away);
        // Without such calls there is nothing to judge.
        if of == 0 {
            return;
        }
        let at_most = AtMost {
            rows,
            observed: let_in,
            limit: *limit,
            of,
            unjudged: 0,
            what: (
                "call was accepted although the caller has no right",
                "calls were accepted although the caller has no right",
            ),
            among: "such call",
            sorts: &["let in"],
        };
        at_most.judge(Name::of::<Self>(), findings);
    }
}
