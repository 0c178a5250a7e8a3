//! The judge of resources: ceilings over the run, and growth.
//!
//! Owns `memory.*`, `descriptors.*`, `threads.*`, `openWatches.*` and `metrics.*`. The rules are files with rows (`judge/rule.rs`), and lines of the lists below.

use units::{Bytes, Growth};

use super::rule::{Section, section};
use super::{Findings, Verdict, crashes};
use crate::record::{Phase, Process, Record};
use crate::words::millis;

mod ceiling;
mod counts;
mod descriptors;
pub(crate) mod growth;
mod metrics;
mod more;
mod reading;
mod retained;

pub use metrics::OwnSeries;

section! {
    /// Limits on the subject's memory.
    Memory as "memory", judge "resources", facts<'a> ();
    always [];
    ceiling: Bytes = ceiling::Memory,
    growth: Growth = growth::Growing,
    growth_per_object: Bytes = growth::PerObject,
    growth_per_request: Bytes = growth::PerRequest,
    retained: Bytes = retained::Retained,
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
    growth: u64 = counts::MoreThreads,
}

section! {
    /// Limits on the watches that the subject holds open.
    OpenWatches as "openWatches", judge "resources", facts<'a> ();
    always [];
    growth: u64 = counts::MoreWatches,
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

/// What is said of growth where the subject was started anew; none where it was not. Where it crashed too often that is said already, and
/// nothing is wrong with the run itself.
fn anew(record: &Record, findings: &Findings) -> Option<(Verdict, String)> {
    let crashed = record.crashes.iter().map(|row| row.t_ms).find(|t_ms| record.phase_at(*t_ms) == Phase::Steady);
    let t_ms = crashed.into_iter().chain(restarted(record)).min()?;
    let verdict = if crashes::too_many(findings) { Verdict::Inconclusive } else { Verdict::Invalid };
    Some((verdict, format!("growth is not judged: the subject was started anew at {}.", millis(t_ms))))
}

/// Why nothing is known of its processes, as the end of a sentence.
fn unsampled(record: &Record) -> Option<String> {
    record.manifest.subject.unsampled.as_ref().map(|why| format!("was never sampled: {why}."))
}

/// When the subject was first started anew in the steady phase; none if it was not.
fn restarted(record: &Record) -> Option<u64> {
    let mut steady = subject(record).filter(|(t_ms, _)| record.phase_at(*t_ms) == Phase::Steady);
    let (_, first) = steady.next()?;
    steady.find(|(_, process)| process.starts != first.starts).map(|(t_ms, _)| t_ms)
}
