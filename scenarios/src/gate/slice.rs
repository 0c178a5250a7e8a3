//! One slice: load on one build, and what it cost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use loadgen::admission::{Config, Counts, Interval, Load};
use reports::gate::{Metric, Pressure, Side, Slice};
use reports::record::quantile_us;

use super::Times;
use crate::observer::{Strain, Usage};
use crate::run::{Events, Stand};

/// Calls under way at the end of a slice may take so long.
pub(super) const DRAIN: Duration = Duration::from_secs(11);
/// Threads need a moment before they can be on time.
const LEAD: Duration = Duration::from_millis(200);

/// A median of fewer says little.
const LAGS_LEAST: usize = 100;

/// Where a slice stands in the gate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) session: u32,
    pub(super) block: u32,
    pub(super) number: u32,
    pub(super) side: Side,
    /// The same for all slices of a block, so that all send the same: pairs, and each build against itself.
    pub(super) seed: u64,
}

/// Sends the load of one slice and measures from the end of its settling on.
pub(super) async fn play(stand: &Stand<'_>, config: &Config, times: Times, place: Place) -> Result<Slice> {
    let length = times.settle + times.slice;
    let plan = stand.plan(config, place.seed, length)?;
    let fingerprint = stand.fingerprint(config, place.seed, length)?;
    let usage = || Usage::read(stand.pid()).with_context(|| format!("{} has no process any more", place.side.letter()));
    let idle = usage()?;
    let begin = Instant::now() + LEAD;
    let load = Load::start(plan, stand.target(), begin).context("failed to start the load")?;
    tokio::time::sleep_until((begin + times.settle).into()).await;
    let (strain, from) = (Strain::read(), Instant::now());
    let settled = load.take();
    let before = usage()?;
    tokio::time::sleep_until((begin + length).into()).await;
    let after = usage()?;
    let within = load.take();
    let [cpu, io, steal] = Strain::read().since(&strain);
    let lasted = from.elapsed();
    let rest = load.stop(DRAIN).await;
    tokio::time::sleep(times.rest).await;
    let at_rest = usage()?;
    let events = stand.events(place.seed, times.settle).await?;

    let mut values = events.map(|events| of_events(&events)).unwrap_or_default();
    let ended = ended(&within.counts);
    let mut set = |metric: Metric, value: Option<f64>| values.extend(value.map(|value| (metric, value)));
    let each = |total: f64, of: u64| (of > 0).then(|| total / of as f64);
    set(Metric::CpuPerRequest, each(after.cpu_ns_since(&before) as f64 / 1000.0, ended));
    set(Metric::FileCalls, each(after.file_calls_since(&before) as f64, ended));
    let answered = within.counts.allowed + within.counts.denied;
    set(Metric::AnswerBytes, each(within.answer_bytes as f64, answered));
    let mut all = within;
    all.add(&rest);
    set(Metric::Failures, each(failed(&all) as f64, all.counts.planned));
    let response = all.response();
    set(Metric::P50, quantile_us(&response, 500).map(|us| us as f64));
    set(Metric::P99, quantile_us(&response, 990).map(|us| us as f64));
    set(Metric::Memory, Some(at_rest.anon_bytes as f64));
    let sent = settled.counts.sent + all.counts.sent;
    set(Metric::GrowthPerRequest, each(at_rest.anon_bytes as f64 - idle.anon_bytes as f64, sent));
    Ok(Slice {
        session: place.session,
        block: place.block,
        place: place.number,
        side: place.side,
        fingerprint,
        lasted_ms: crate::clock::millis(lasted),
        planned: all.counts.planned,
        answered: all.counts.allowed + all.counts.denied,
        pressure: Pressure { cpu, io, steal, lateness_us: lateness(&all) },
        values,
    })
}

/// What a while of churn cost, and how soon it was seen.
fn of_events(events: &Events) -> BTreeMap<Metric, f64> {
    let mut lags = events.seen.lags.clone();
    lags.sort_unstable();
    let cpu = events.cpu_ns as f64 / 1000.0 / events.seen.events as f64;
    let mut values = BTreeMap::from([(Metric::CpuPerEvent, cpu)]);
    if lags.len() >= LAGS_LEAST {
        values.insert(Metric::Lag, lags[lags.len() / 2].as_nanos() as f64 / 1000.0);
    }
    values
}

/// Calls that came to an end.
fn ended(counts: &Counts) -> u64 {
    counts.allowed + counts.denied + counts.errors()
}

/// Requests without a valid and right answer.
fn failed(all: &Interval) -> u64 {
    let counts = &all.counts;
    counts.errors() + counts.overflow + counts.abandoned + counts.wrong_verdicts
}

fn lateness(all: &Interval) -> u64 {
    if all.lateness.is_empty() { 0 } else { all.lateness.value_at_quantile(0.99) }
}

/// A slice on one line.
pub(super) fn told(slice: &Slice, number: usize, of: usize) -> String {
    let shown =
        |metric: Metric| slice.values.get(&metric).map_or_else(|| "-".to_owned(), |value| metric.rule().value(*value));
    format!(
        "[{number}/{of}] {}: {} answers, CPU {} a request, p50 {}, waiting {}",
        slice.side.letter(),
        reports::words::count(slice.answered),
        shown(Metric::CpuPerRequest),
        shown(Metric::P50),
        slice.pressure.cpu.map_or_else(|| "-".to_owned(), reports::words::percent),
    )
}
