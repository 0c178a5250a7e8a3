//! The judge of resources: ceilings over the run, growth of descriptors, and whether a run could decide growth of memory.
//!
//! Owns `memory.*`, `descriptors.*` and `threads.*`. The rules are files with rows (`judge/rule.rs`), and lines of the lists below.

use units::{Bytes, Growth};

use super::Findings;
use super::rule::{Section, section};
use crate::record::{Process, Record};

mod ceiling;
mod descriptors;
mod growth;

section! {
    /// Limits on the subject's memory.
    Memory as "memory", judge "resources", facts<'a> ();
    always [];
    ceiling: Bytes = ceiling::Memory,
    growth: Growth = growth::Growing,
    growth_per_object: Bytes = growth::PerObject,
}

section! {
    /// Limits on the subject's open file descriptors.
    Descriptors as "descriptors", judge "resources", facts<'a> ();
    always [];
    ceiling: u64 = ceiling::Descriptors,
    growth: u64 = descriptors::Growing,
}

section! {
    /// Limits on the subject's threads.
    Threads as "threads", judge "resources", facts<'a> ();
    always [];
    ceiling: u64 = ceiling::Threads,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let budgets = &record.manifest.budgets;
    if let Some(memory) = &budgets.memory {
        memory.judge_each(record, &(), findings);
    }
    if let Some(descriptors) = &budgets.descriptors {
        descriptors.judge_each(record, &(), findings);
    }
    if let Some(threads) = &budgets.threads {
        threads.judge_each(record, &(), findings);
    }
}

/// Time and process of every sample of the subject.
fn subject(record: &Record) -> impl Iterator<Item = (u64, Process)> {
    record.samples.iter().filter_map(|sample| Some((sample.t_ms, sample.subject?)))
}
