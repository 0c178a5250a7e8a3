//! `objects.deletedByOthers`: objects that other clients made and that the subject deleted.
//!
//! A program whose task is deletion, such as enforcing a time to live, needs a budget above 0. Other programs must not
//! delete objects that another client still needs.

use super::{had_read, request};
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{Foreign, Record};
use crate::words::{counted, millis};

pub(super) struct DeletedByOthers;

impl Rule for DeletedByOthers {
    const WORD: Option<Word> = Some(Word::DeletesOthers);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, foreign: &&Foreign, limit: &u64, findings: &mut Findings) {
        let number = (foreign.deleted, *limit);
        findings.push_counted(Name::of::<Self>(), number, foreign.unread.as_deref(), text(foreign, *limit));
    }
}

fn text(foreign: &Foreign, limit: u64) -> String {
    let Some(first) = foreign.deletions.first().filter(|_| foreign.deleted > 0) else {
        return "the subject deleted no object of another client.".to_owned();
    };
    let told = format!(
        "the subject deleted {} of other clients, before any of them asked for it: {} {} at {} by {}. {}",
        counted(foreign.deleted, "object"),
        first.resource,
        first.object,
        millis(first.t_ms),
        request(first),
        had_read(first)
    );
    if foreign.deleted <= limit {
        return told;
    }
    format!("{told} If that is its job, allow it: `budgets: {{objects: {{deletedByOthers: {}}}}}`.", foreign.deleted)
}
