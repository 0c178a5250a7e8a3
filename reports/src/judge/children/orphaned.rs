//! `children.orphaned`: children without an owner reference that still exist at the end although their parent was
//! deleted.
//!
//! The garbage collector deletes children with an owner reference; the subject must delete other children. Children
//! without an owner reference are found by their name or labels.

use super::unread;
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{Orphaned as Child, Record, Siblings};
use crate::words::{count, millis};

pub(super) struct Orphaned;

impl Rule for Orphaned {
    const WORD: Option<Word> = Some(Word::Orphaned);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, kinds: &&[Siblings], limit: &u64, findings: &mut Findings) {
        let orphaned: u64 = kinds.iter().map(|kind| kind.orphaned).sum();
        findings.push_counted(Name::of::<Self>(), (orphaned, *limit), unread(kinds), text(kinds, orphaned));
    }
}

fn text(kinds: &[Siblings], orphaned: u64) -> String {
    let first = kinds.iter().find_map(|kind| Some((kind, kind.orphans.first()?)));
    let Some((kind, first)) = first.filter(|_| orphaned > 0) else {
        return "no child without an owner reference outlived its parent.".to_owned();
    };
    let Child { child, parent, known, for_ms } = first;
    let many: Vec<String> = kinds
        .iter()
        .filter(|kind| kind.orphaned > 0)
        .map(|kind| {
            let outlive = if kind.orphaned == 1 { "outlives its parent" } else { "outlive their parents" };
            format!("{} {} without an owner reference {outlive}", count(kind.orphaned), kind.resource)
        })
        .collect();
    format!(
        "{}, so no garbage collector deletes them, and the subject did not either: {} {child} ({known}) still exists {} after {} {parent} \
         was deleted.",
        many.join(", "),
        kind.resource,
        millis(*for_ms),
        kind.of
    )
}
