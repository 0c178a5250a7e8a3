//! `children.excess`: parents that had more children than they should have, even for a moment.
//!
//! A typical cause: the subject makes a child twice, with a name that the server generates, because its cache does not
//! contain the first child yet. A garbage collector, or the subject's next reconciliation, removes the second child
//! before the end of the run.

use super::unread;
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{Record, Siblings, TooMany};
use crate::words::{count, millis};

pub(super) struct Excess;

impl Rule for Excess {
    const WORD: Option<Word> = Some(Word::Excess);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, kinds: &&[Siblings], limit: &u64, findings: &mut Findings) {
        let excess: u64 = kinds.iter().map(|kind| kind.excess).sum();
        findings.push_counted(Name::of::<Self>(), (excess, *limit), unread(kinds), text(kinds, excess));
    }
}

fn text(kinds: &[Siblings], excess: u64) -> String {
    let first = kinds.iter().find_map(|kind| Some((kind, kind.examples.first()?)));
    let Some((kind, first)) = first.filter(|_| excess > 0) else {
        let made: Vec<String> = kinds
            .iter()
            .map(|kind| format!("{} {} of {} {}", count(kind.made), kind.resource, count(kind.parents), kind.of))
            .collect();
        return format!("no object had too many children at any time ({}).", made.join(", "));
    };
    let many: Vec<String> = kinds
        .iter()
        .filter(|kind| kind.excess > 0)
        .map(|kind| {
            format!("{} of {} {} had too many {}", count(kind.excess), count(kind.parents), kind.of, kind.resource)
        })
        .collect();
    format!("{}; first: {}.", many.join(", "), example_text(kind, first))
}

fn example_text(kind: &Siblings, one: &TooMany) -> String {
    let how_long = match one.to_ms {
        Some(to_ms) => format!("for {}", millis(to_ms.saturating_sub(one.from_ms))),
        None => "until the end".to_owned(),
    };
    let named = if one.children.is_empty() { String::new() } else { format!(" ({})", one.children.join(", ")) };
    format!(
        "{} had {} {} instead of {} at {}, {how_long}{named}",
        one.object,
        count(one.found),
        kind.resource,
        count(one.wanted),
        millis(one.from_ms)
    )
}
