//! One slice of a gate: sends load to one build for a short time and measures its cost. A slice begins with reviews, if
//! the scenario has reviews, and ends with changes of objects.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use loadgen::admission::{Config, Counts, Interval, Load};
use reports::gate::order::BLOCK;
use reports::gate::{Metric, Pressure, Side, Slice};
use reports::record::quantile_us;

use super::work::{EVENTS_LEAST, Work};
use crate::observer::{Strain, Usage};
use crate::run::{Events, Testbed};

/// Longest wait for open calls at the end of a measurement.
pub(super) const DRAIN: Duration = Duration::from_secs(11);
/// Time between the start of the threads and the first request, so that the threads are ready in time.
const LEAD: Duration = Duration::from_millis(200);
/// Maximum share of the changes in one measurement that the control plane may refuse. Above this share, the two builds
/// may have done different work.
const REFUSED_MOST: f64 = 0.01;

/// The position of a measurement in the gate: session, index, build (side A or B) and seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub(super) session: u32,
    pub(super) block: u32,
    pub(super) number: u32,
    pub(super) side: Side,
    /// Seed of the payload. All measurements of a block have the same seed, so that their results are comparable.
    pub(super) seed: u64,
}

impl Position {
    /// The measurement with this index in a session. A repeated measurement has the same index as before, and so the
    /// same payload.
    pub(super) fn of(seed: u64, session: u32, index: u32, side: Side) -> Self {
        let block = index / BLOCK;
        let seed = seed + u64::from(session) * 10_000 + u64::from(block);
        Self { session, block, number: index % BLOCK, side, seed }
    }
}

pub(super) async fn play(stand: &Testbed<'_>, work: &Work, place: Position) -> Result<Slice> {
    let mut slice = Slice {
        session: place.session,
        block: place.block,
        place: place.number,
        side: place.side,
        fingerprint: String::new(),
        lasted_ms: 0,
        planned: 0,
        answered: 0,
        changes: 0,
        pressure: Pressure::default(),
        values: std::collections::BTreeMap::new(),
    };
    if let Some(config) = &work.reviews {
        reviews(stand, config, work, place, &mut slice).await?;
    }
    if work.churn.is_some() {
        events(stand, work, place, &mut slice).await?;
    }
    Ok(slice)
}

fn usage(stand: &Testbed<'_>, place: Position) -> Result<Usage> {
    Usage::read(stand.pid()).with_context(|| format!("{} no longer has a process", place.side.letter()))
}

fn each(total: f64, of: u64) -> Option<f64> {
    (of > 0).then(|| total / of as f64)
}

/// Sends the reviews of one measurement, and measures their cost after the warm-up.
async fn reviews(stand: &Testbed<'_>, config: &Config, work: &Work, place: Position, slice: &mut Slice) -> Result<()> {
    let times = work.times;
    let length = times.settle + times.slice;
    let plan = stand.plan(config, place.seed, length).await?;
    slice.fingerprint = stand.fingerprint(config, place.seed, length)?;
    let idle = usage(stand, place)?;
    let begin = Instant::now() + LEAD;
    let load = Load::start(plan, stand.target()?, begin).context("failed to start the load")?;
    tokio::time::sleep_until((begin + times.settle).into()).await;
    let (strain, from) = (Strain::read(), Instant::now());
    let settled = load.take();
    let before = usage(stand, place)?;
    tokio::time::sleep_until((begin + length).into()).await;
    let after = usage(stand, place)?;
    let within = load.take();
    slice.pressure = pressure(&strain);
    slice.lasted_ms = crate::clock::millis(from.elapsed());
    let rest = load.stop(DRAIN).await;
    tokio::time::sleep(times.rest).await;
    let at_rest = usage(stand, place)?;

    let ended = ended(&within.counts);
    let mut set = |metric: Metric, value: Option<f64>| slice.values.extend(value.map(|value| (metric, value)));
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
    slice.planned = all.counts.planned;
    slice.answered = all.counts.allowed + all.counts.denied;
    slice.pressure.lateness_us = lateness(&all);
    Ok(())
}

async fn events(stand: &Testbed<'_>, work: &Work, place: Position, slice: &mut Slice) -> Result<()> {
    let how = work.events(place.seed);
    let idle = usage(stand, place)?;
    let (strain, from) = (Strain::read(), Instant::now());
    let Some(events) = stand.events(how).await? else { return Ok(()) };
    let (strain, lasted) = (pressure(&strain), from.elapsed());
    tokio::time::sleep(work.times.rest).await;
    let at_rest = usage(stand, place)?;

    let Events { changes, objects, failed, lags, lateness_us, bytes, refused, cpu_ns } = events;
    ensure!(
        refused.0 as f64 <= changes as f64 * REFUSED_MOST,
        "the control plane did not take {} of {changes} changes, such as: {}",
        refused.0,
        refused.1.as_deref().unwrap_or("nobody knows which")
    );
    let mut set = |metric: Metric, value: Option<f64>| slice.values.extend(value.map(|value| (metric, value)));
    set(Metric::EventFailures, failed);
    set(Metric::CpuPerEvent, each(cpu_ns as f64 / 1000.0, changes));
    set(Metric::BytesPerEvent, bytes.and_then(|bytes| each(bytes as f64, changes)));
    set(Metric::Lag, median(lags));
    set(Metric::GrowthPerObject, each(at_rest.anon_bytes as f64 - idle.anon_bytes as f64, objects));
    slice.changes = changes;
    if let Some(print) = stand.fingerprint_of_events(how)? {
        let both = [std::mem::take(&mut slice.fingerprint), print];
        slice.fingerprint = both.into_iter().filter(|print| !print.is_empty()).collect::<Vec<_>>().join("-");
    }
    if work.reviews.is_none() {
        set_alone(slice, &at_rest, Pressure { lateness_us, ..strain }, lasted);
    }
    Ok(())
}

/// Sets the figures of a measurement with changes of objects and without reviews.
fn set_alone(slice: &mut Slice, at_rest: &Usage, pressure: Pressure, lasted: Duration) {
    slice.values.insert(Metric::Memory, at_rest.anon_bytes as f64);
    slice.pressure = pressure;
    slice.lasted_ms = crate::clock::millis(lasted);
}

/// The load on the machine since `since` was measured.
pub(super) fn pressure(since: &Strain) -> Pressure {
    let [cpu, io, steal] = Strain::read().since(since);
    Pressure { cpu, io, steal, lateness_us: 0 }
}

/// The median in microseconds; `None` if there are too few values.
fn median(mut lags: Vec<Duration>) -> Option<f64> {
    lags.sort_unstable();
    (lags.len() >= EVENTS_LEAST).then(|| lags[lags.len() / 2].as_nanos() as f64 / 1000.0)
}

/// The number of calls that ended, with or without an answer.
fn ended(counts: &Counts) -> u64 {
    counts.allowed + counts.denied + counts.errors()
}

/// The number of requests without a valid and right answer.
fn failed(all: &Interval) -> u64 {
    let counts = &all.counts;
    counts.errors() + counts.overflow + counts.abandoned + counts.wrong_verdicts
}

fn lateness(all: &Interval) -> u64 {
    if all.lateness.is_empty() { 0 } else { all.lateness.value_at_quantile(0.99) }
}

pub(super) fn line(slice: &Slice, number: usize, of: usize) -> String {
    let shown =
        |metric: Metric| slice.values.get(&metric).map_or_else(|| "-".to_owned(), |value| metric.rule().value(*value));
    let reviews = format!(
        "{} answers, CPU {} a request, p50 {}",
        reports::words::count(slice.answered),
        shown(Metric::CpuPerRequest),
        shown(Metric::P50)
    );
    let events = format!(
        "{} events, CPU {} an event, lag {}",
        reports::words::count(slice.changes),
        shown(Metric::CpuPerEvent),
        shown(Metric::Lag)
    );
    format!(
        "[{number}/{of}] {}: {}, waiting {}",
        slice.side.letter(),
        if slice.planned > 0 { reviews } else { events },
        slice.pressure.cpu.map_or_else(|| "-".to_owned(), reports::words::percent),
    )
}
