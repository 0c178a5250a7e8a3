//! The judge of children at any time: what the end state cannot show because somebody tidied up before.
//!
//! Owns `children.*`; whether children are right at the end is `events.restored`. The rules are files with rows (`judge/rule.rs`), and lines of
//! the list below. It reads what the record says of siblings; a scenario without `subject.children` has nothing.

use super::rule::{Name, Section, section};
use super::{Findings, Verdict};
use crate::budgets::ChildrenLimits;
use crate::record::{Record, Siblings};

mod excess;

section! {
    ChildrenLimits as "children", judge "children", facts<'a> &'a [Siblings];
    excess "excess": u64 = excess::Excess,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let budget = record.manifest.budgets.children.clone().unwrap_or_default();
    let kinds = record.objects.as_ref().map_or(&[][..], |objects| &objects.siblings);
    let unread = match kinds {
        [] => Some("the run did not come to the end of its drain, or its scenario names no `subject.children`"),
        kinds if kinds.iter().all(|kind| kind.excess == 0) => kinds.iter().find_map(|kind| kind.unread.as_deref()),
        _ => None,
    };
    match unread {
        None => budget.judge_each(record, &kinds, findings),
        Some(why) if budget.excess.is_some() => {
            let limit = budget.excess.unwrap_or_default().to_string();
            let text = format!("how many children there were at any time was not seen: {why}.");
            findings.push(Name::of::<excess::Excess>(), Verdict::Inconclusive, "not seen", limit, text);
        }
        Some(why) if !kinds.is_empty() => findings.note(format!("children.excess was not judged: {why}.")),
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests;
