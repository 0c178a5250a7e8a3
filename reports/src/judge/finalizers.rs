//! The judge of deletions that finalizers keep from completing.
//!
//! Owns the budgets `finalizers.*`. The judge reads the field `hanging` of `objects.json`, which a run without churn,
//! or an older record, does not have.

use super::rule::{Name, Section, section};
use super::{Findings, Verdict};
use crate::budgets::Finalizers;
use crate::record::{Hanging, Record};

mod stuck;

section! {
    Finalizers as "finalizers", judge "finalizers", facts<'a> &'a Hanging;
    stuck "stuck": u64 = stuck::Stuck,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let budget = record.manifest.budgets.finalizers.clone().unwrap_or_default();
    let hanging = record.objects.as_ref().and_then(|objects| objects.hanging.as_ref());
    let unread = match hanging {
        Some(hanging) => hanging.unread.clone().filter(|_| hanging.held.is_empty()),
        None => Some("the run did not reach the end of its drain, or its scenario has no churn".to_owned()),
    };
    let limit = budget.stuck.unwrap_or_default().to_string();
    match (hanging, unread) {
        (Some(hanging), None) => budget.judge_each(record, &hanging, findings),
        (_, Some(why)) if hanging.is_some() || budget.stuck.is_some() => {
            let text = format!("objects that hang in deletion were not read: {why}.");
            findings.push(Name::of::<stuck::Stuck>(), Verdict::Inconclusive, "not read", limit, text);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
