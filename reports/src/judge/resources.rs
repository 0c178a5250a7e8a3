//! The judge of the subject's resources: ceilings during the run, and growth.
//!
//! Owns the budgets `memory.*`, `descriptors.*`, `threads.*`, `openWatches.*` and `metrics.*`. Each rule is a file that
//! implements `judge/rule.rs`, and has a line in one of the lists of this file.

use units::{Bytes, Growth};

use super::Findings;
use super::rule::{Section, section};
use crate::budgets::{Descriptors, Memory, OpenWatches, Threads};
use crate::record::{Phase, Process, Record};

mod ceiling;
mod counts;
mod descriptors;
pub(crate) mod growth;
mod metrics;
mod more;
mod reading;
mod retained;

section! {
    Memory as "memory", judge "resources", facts<'a> ();
    ceiling "ceiling": Bytes = ceiling::Memory,
    growth "growth": Growth = growth::Growing,
    growth_per_own_hour "growthPerOwnHour": Bytes = growth::PerOwnHour,
    growth_per_object "growthPerObject": Bytes = growth::PerObject,
    growth_per_request "growthPerRequest": Bytes = growth::PerRequest,
    retained "retained": Bytes = retained::Retained,
}

section! {
    Descriptors as "descriptors", judge "resources", facts<'a> ();
    ceiling "ceiling": u64 = ceiling::Descriptors,
    growth "growth": u64 = descriptors::Growing,
}

section! {
    Threads as "threads", judge "resources", facts<'a> ();
    ceiling "ceiling": u64 = ceiling::Threads,
    growth "growth": u64 = counts::MoreThreads,
}

section! {
    OpenWatches as "openWatches", judge "resources", facts<'a> ();
    ceiling "ceiling": u64 = ceiling::Watches,
    growth "growth": u64 = counts::MoreWatches,
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
    if let Some(watches) = &budgets.open_watches {
        watches.judge_each(record, &(), findings);
    }
    metrics::judge(record, &budgets.metrics, findings);
    reading::note(record, findings);
}

/// Time and process of every sample of the subject.
fn subject(record: &Record) -> impl Iterator<Item = (u64, Process)> {
    record.samples.iter().filter_map(|sample| Some((sample.t_ms, sample.subject?)))
}

/// Time and process of the samples with counts of descriptors and threads, which kubelets do not report.
fn counted(record: &Record) -> impl Iterator<Item = (u64, Process)> {
    subject(record).filter(|(_, process)| !process.told)
}

/// A time range in the steady phase in which one process of the subject ran, after the process's warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Life {
    from_ms: u64,
    to_ms: u64,
}

/// All times in which one process of the subject ran, in order; one entry if the subject was never started again.
fn lives(record: &Record) -> Vec<Life> {
    let warm_up_ms = record.manifest.phases.warm_up_ms;
    let mut lives = Vec::new();
    let mut from_ms = 0;
    for start_ms in starts(record) {
        // The sample of that moment belongs to the next process.
        lives.push(Life { from_ms, to_ms: start_ms.saturating_sub(1) });
        from_ms = start_ms.saturating_add(warm_up_ms);
    }
    lives.push(Life { from_ms, to_ms: u64::MAX });
    lives
}

/// When the subject was first started again in the steady phase, after a crash or for another reason; none if it never
/// was.
fn anew(record: &Record) -> Option<u64> {
    starts(record).first().copied()
}

/// All times at which the subject was started again in the steady phase.
fn starts(record: &Record) -> Vec<u64> {
    let steady = |t_ms: &u64| record.phase_at(*t_ms) == Phase::Steady;
    let mut starts: Vec<u64> = record.crashes.iter().map(|row| row.t_ms).filter(steady).collect();
    let mut before = None;
    for (t_ms, process) in subject(record).filter(|(t_ms, _)| steady(t_ms)) {
        if before.is_some_and(|before| before != process.starts) {
            starts.push(t_ms);
        }
        before = Some(process.starts);
    }
    starts.sort_unstable();
    starts
}

/// Why the subject's descriptors and threads are unknown, as the end of a sentence; none if they are known.
fn uncounted(record: &Record) -> Option<String> {
    let told = subject(record).any(|(_, process)| process.told);
    let why = "was never sampled: its Pods are on other machines, and kubelets report only memory and processor time.";
    unsampled(record).or_else(|| told.then(|| why.to_owned()))
}

/// Why the subject's processes are unknown, as the end of a sentence; none if they are known.
fn unsampled(record: &Record) -> Option<String> {
    record.manifest.subject.unsampled.as_ref().map(|why| format!("was never sampled: {why}."))
}
