//! `objects.resurrected`: objects that other clients deleted and that the subject made again.
//!
//! A typical cause: the subject removes its finalizer by "create or update". If another client deletes the object
//! between the subject's read and its write, nothing is left to update. The subject then creates an empty object with
//! the old name, and children for this object.

use super::{had_read, request};
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{Foreign, Record};
use crate::words::{count, millis};

pub(super) struct Resurrected;

impl Rule for Resurrected {
    const WORD: Option<Word> = Some(Word::MadeAgain);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, foreign: &&Foreign, limit: &u64, findings: &mut Findings) {
        let number = (foreign.made_again, *limit);
        findings.push_counted(Name::of::<Self>(), number, foreign.unread.as_deref(), text(foreign));
    }
}

fn text(foreign: &Foreign) -> String {
    let gone = count(foreign.gone);
    let Some(first) = foreign.again.first().filter(|_| foreign.made_again > 0) else {
        return format!("the subject created none of the {gone} objects again that other clients had deleted.");
    };
    let back = match first.gone_ms {
        Some(gone_ms) => {
            format!(
                "was gone at {} and came back {} later",
                millis(gone_ms),
                millis(first.t_ms.saturating_sub(gone_ms))
            )
        }
        None => format!("came back at {}", millis(first.t_ms)),
    };
    format!(
        "the subject created {} of {gone} objects again that other clients had deleted: {} {} {back} by {}. {}",
        count(foreign.made_again),
        first.resource,
        first.object,
        request(first),
        had_read(first)
    )
}
