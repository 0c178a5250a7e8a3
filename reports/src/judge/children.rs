//! The judge of children during the run. The judge finds problems that the end state cannot show, because they were
//! corrected before the end, or because children are recognised by their owner.
//!
//! Owns the budgets `children.*`; `events.restored` judges the children at the end. The counts of children are in the
//! field `siblings` of `objects.json`; a scenario without `subject.children` has none.

use super::rule::{Name, Section, section};
use super::{Findings, Verdict};
use crate::budgets::ChildrenLimits;
use crate::record::{Record, Siblings};

mod excess;
mod orphaned;

section! {
    ChildrenLimits as "children", judge "children", facts<'a> &'a [Siblings];
    excess "excess": u64 = excess::Excess,
    orphaned "orphaned": u64 = orphaned::Orphaned,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let budget = record.manifest.budgets.children.clone().unwrap_or_default();
    let kinds = record.objects.as_ref().map_or(&[][..], |objects| &objects.siblings);
    if !kinds.is_empty() {
        budget.judge_each(record, &kinds, findings);
        return;
    }
    let limits = [(Name::of::<excess::Excess>(), budget.excess), (Name::of::<orphaned::Orphaned>(), budget.orphaned)];
    for (name, limit) in limits {
        let Some(limit) = limit else { continue };
        let text = "the number of children over time was not observed: the run did not reach the end of its drain, or its scenario has no \
                    `subject.children`.";
        findings.push(name, Verdict::Inconclusive, "not seen", limit.to_string(), text);
    }
}

/// Why the harness did not see some children; none if it saw all.
fn unread(kinds: &[Siblings]) -> Option<&str> {
    kinds.iter().find_map(|kind| kind.unread.as_deref())
}

#[cfg(test)]
mod tests;
