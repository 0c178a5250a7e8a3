//! The figures by which subjects are compared, in the order of the table.
//!
//! Owns how each figure and its interval are read from a record. Versions lost in one outage are lost at once, so a
//! thousand of them prove little more than one: a count of losses is as certain as the number of its outages. The
//! interval of a sampled figure reaches from the least to the largest of its values in several equal parts of the
//! steady phase.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::FigureHead;
use crate::growth::{self, Question};
use crate::judge::longest_blind_ms;
use crate::ledger::Outcome;
use crate::record::{ApiRow, EventCounts, FaultEvent, Phase, Process, Record, quantile_us, tag};
use crate::statistics::blocks::Series;
use crate::statistics::quantile::median;
use crate::statistics::{poisson, theil_sen};
use crate::words::{bytes, count, micros, millis, three_digits, whole};

const CONFIDENCE: f64 = 0.95;
/// Maximum number of equal parts into which the steady phase is divided for the averages of processor time. Each part
/// contains at least two sampling intervals, because processor time is counted in whole milliseconds.
const PARTS_MOST: usize = 6;
const PARTS_LEAST: usize = 3;
/// The limit for memory growth, in bytes per hour, if the scenario sets none. Growth of this size is visible in the
/// graph of any day.
const GROWTH_BYTES_PER_HOUR: f64 = 1_048_576.0;
/// The smallest scatter of memory, in bytes, that the interval of its growth assumes; equal to that of the budget
/// `memory.growth`.
const SIGMA_BYTES: f64 = 65_536.0;
/// Maximum and minimum number of points of the series of open watches: a longer series is reduced, a shorter one gives
/// no figure.
const WATCH_POINTS: usize = 512;
const WATCH_POINTS_LEAST: usize = 8;

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A count.
    Count,
    /// A count per hour.
    CountPerHour,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// Bytes per hour.
    BytesPerHour,
}

impl Unit {
    pub fn words(self, value: f64) -> String {
        let signed = |words: String| if value < 0.0 { format!("−{words}") } else { words };
        match self {
            Self::Count if value.fract() == 0.0 => count(whole(value)),
            Self::Count => three_digits(value),
            Self::CountPerHour => format!("{}/h", three_digits(value)),
            Self::Millis => millis(whole(value)),
            Self::Micros => micros(whole(value)),
            Self::Bytes => bytes(whole(value)),
            Self::BytesPerHour => format!("{}/h", signed(bytes(whole(value.abs())))),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    pub value: f64,
    /// The interval of the value; none if one run does not give an interval.
    pub interval: Option<(f64, f64)>,
    /// The mean number of versions that are lost at once, for figures of losses; 1 for all other figures.
    pub burst: f64,
}

/// The groups of figures; each group has a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Figures of the subject's observations.
    Events,
    /// Figures of the subject's requests.
    Requests,
    /// Figures of the subject's resources.
    Resources,
}

impl Group {
    /// All groups, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Events, Self::Requests, Self::Resources];

    pub fn words(self) -> &'static str {
        match self {
            Self::Events => "What it saw",
            Self::Requests => "What it asked",
            Self::Resources => "What it used",
        }
    }
}

#[derive(Debug)]
pub struct Figure {
    pub group: Group,
    pub key: &'static str,
    /// The figure's name for people.
    pub name: &'static str,
    pub unit: Unit,
    /// Whether a smaller value is better, so that subjects are ranked.
    pub ranked: bool,
    /// How the figure's interval is computed, for people.
    interval: &'static str,
    read: Read,
}

/// How a figure is read from a record, if it was measured.
#[derive(Debug)]
enum Read {
    Alone(fn(&Record) -> Option<f64>),
    /// The figure is a value with its interval, if it has one.
    Sure(fn(&Record) -> Option<Reading>),
}

impl Figure {
    pub(super) fn of(&self, record: &Record) -> Option<Reading> {
        match self.read {
            Read::Alone(read) => read(record).map(|value| Reading { value, interval: None, burst: 1.0 }),
            Read::Sure(read) => read(record),
        }
    }

    pub(super) fn head(&self) -> FigureHead {
        FigureHead {
            key: self.key.to_owned(),
            name: self.name.to_owned(),
            group: self.group,
            unit: self.unit,
            ranked: self.ranked,
            interval: self.interval.to_owned(),
        }
    }
}

const BURSTS: &str = "95 %, of the number of bursts in which they were lost";
const SPREAD: &str = "from the least to the most in the steady phase";
const PARTS: &str = "from the least to the most of equal parts of the steady phase";
const SLOPE: &str = "95 % on each side, Theil and Sen's slope through blocks of the steady phase";
const NONE: &str = "none";

pub const FIGURES: &[Figure] = &[
    loss("missed", "missed", |record| losses(record, &[Outcome::Missed, Outcome::IdentitySwap])),
    loss("late", "late", |record| losses(record, &[Outcome::Late, Outcome::LateGhost])),
    loss("ghosts", "ghosts", |record| losses(record, &[Outcome::Ghost])),
    plain(Group::Events, "longestBlind", "longest blind", Unit::Millis, |record| {
        knows_authors(record).then(|| longest_blind_ms(record) as f64)
    }),
    plain(Group::Events, "timeToNotice", "time to notice", Unit::Millis, notice),
    plain(Group::Events, "lagP99", "lag p99", Unit::Micros, |record| {
        record.latency.whole(tag::LAG).and_then(|lag| quantile_us(&lag, 990)).map(|us| us as f64)
    }),
    plain(Group::Requests, "requests", "requests", Unit::Count, |record| sum(record, |row| row.subject_requests)),
    plain(Group::Requests, "reconnects", "watches opened", Unit::Count, |record| {
        sum(record, |row| row.subject_watches)
    }),
    plain(Group::Requests, "connections", "connections opened", Unit::Count, |record| {
        sum(record, |row| row.subject_connections)
    }),
    plain(Group::Requests, "openWatches", "open watches, most", Unit::Count, |record| {
        let most = record.intervals.iter().map(|row| row.api.subject_open_watches).max()?;
        knows_authors(record).then_some(most as f64)
    }),
    Figure {
        group: Group::Requests,
        key: "openWatchesSlope",
        name: "open watches, growth",
        unit: Unit::CountPerHour,
        ranked: false,
        interval: "95 % on each side, Theil and Sen's slope",
        read: Read::Sure(watches_slope),
    },
    plain(Group::Resources, "descriptors", "descriptors, most", Unit::Count, |record| {
        most(record, |process| process.fds.total())
    }),
    plain(Group::Resources, "memoryStart", "memory at the start", Unit::Bytes, |record| {
        Some(steady(record).first()?.1.rss_bytes as f64)
    }),
    plain(Group::Resources, "memoryEnd", "memory at the end", Unit::Bytes, |record| {
        Some(steady(record).last()?.1.rss_bytes as f64)
    }),
    plain(Group::Resources, "memoryMost", "memory, most", Unit::Bytes, |record| {
        most(record, |process| process.rss_bytes)
    }),
    Figure {
        group: Group::Resources,
        key: "memory",
        name: "memory",
        unit: Unit::Bytes,
        ranked: true,
        interval: SPREAD,
        read: Read::Sure(memory),
    },
    Figure {
        group: Group::Resources,
        key: "memorySlope",
        name: "memory, growth",
        unit: Unit::BytesPerHour,
        ranked: true,
        interval: SLOPE,
        read: Read::Sure(memory_slope),
    },
    Figure {
        group: Group::Resources,
        key: "heap",
        name: "heap",
        unit: Unit::Bytes,
        ranked: false,
        interval: SPREAD,
        read: Read::Sure(heap),
    },
    Figure {
        group: Group::Resources,
        key: "cpuPerEvent",
        name: "processor time per event seen",
        unit: Unit::Micros,
        ranked: true,
        interval: PARTS,
        read: Read::Sure(cpu_per_event),
    },
    plain(Group::Events, "crashes", "crashes", Unit::Count, |record| {
        let exited =
            matches!(record.end.as_ref().map(|end| &end.reason), Some(record::EndReason::SubjectExited { .. }));
        Some((record.crashes.last().map_or(0, |row| row.number) + u64::from(exited)) as f64)
    }),
    plain(Group::Events, "restarts", "restarts", Unit::Count, |record| {
        let starts = record.samples.iter().filter_map(|row| Some(row.subject?.starts)).max()?;
        Some(f64::from(starts.saturating_sub(1)))
    }),
];

const fn loss(key: &'static str, name: &'static str, read: fn(&Record) -> Option<Reading>) -> Figure {
    Figure {
        group: Group::Events,
        key,
        name,
        unit: Unit::Count,
        ranked: true,
        interval: BURSTS,
        read: Read::Sure(read),
    }
}

const fn plain(
    group: Group,
    key: &'static str,
    name: &'static str,
    unit: Unit,
    read: fn(&Record) -> Option<f64>,
) -> Figure {
    Figure { group, key, name, unit, ranked: false, interval: NONE, read: Read::Alone(read) }
}

/// Whether the control plane reports the author of each request.
fn knows_authors(record: &Record) -> bool {
    record.requests.told
}

/// Time in milliseconds: versions committed within this time of each other count as lost at once.
const BURST_MS: u64 = 5000;

/// Number of versions lost with these outcomes, with an interval that follows from the number of outages: losses within
/// [`BURST_MS`] count as one outage.
fn losses(record: &Record, outcomes: &[Outcome]) -> Option<Reading> {
    let totals: EventCounts = record.totals();
    if totals.commits == 0 {
        return None;
    }
    let number: u64 = outcomes.iter().map(|outcome| outcome.of(&totals)).sum();
    let mut bursts: BTreeMap<u64, f64> = BTreeMap::new();
    for row in record.anomalies.iter().filter(|row| outcomes.contains(&row.outcome)) {
        *bursts.entry(row.committed_ms.unwrap_or(row.t_ms) / BURST_MS).or_default() += 1.0;
    }
    let named: f64 = bursts.values().sum();
    let squares: f64 = bursts.values().map(|size| size * size).sum();
    let value = number as f64;
    // The mean size of the burst that a lost version belongs to. Only some losses have a row; the others were lost in
    // the same bursts.
    let size = if named > 0.0 { (squares / named * (value / named).max(1.0)).max(1.0) } else { 1.0 };
    let (lower, upper) = poisson::byar(value / size, CONFIDENCE).ok()?;
    Some(Reading { value, interval: Some((lower * size, upper * size)), burst: size })
}

/// The longest time from the first hit of a fault to the next list or watch of a judged resource. If no list or watch
/// follows, the time ends with the run.
fn notice(record: &Record) -> Option<f64> {
    if !knows_authors(record) {
        return None;
    }
    let mut hits: BTreeMap<&str, u64> = BTreeMap::new();
    for row in record.faults.iter().filter(|row| row.event == FaultEvent::Hit) {
        hits.entry(&row.id).or_insert(row.t_ms);
    }
    let judged: BTreeSet<&str> = record.manifest.judged.iter().map(String::as_str).collect();
    let asks = || record.requests.rows.iter().filter(|row| row.follows() && judged.contains(row.resource.as_str()));
    let noticed = |hit_ms: u64| asks().map(|row| row.t_ms).filter(|t_ms| *t_ms > hit_ms).min();
    let end_ms = record.end.as_ref().map_or(record.length_ms(), |end| end.ended_ms);
    hits.into_values().map(|hit_ms| noticed(hit_ms).unwrap_or(end_ms).saturating_sub(hit_ms)).max().map(|ms| ms as f64)
}

fn sum(record: &Record, read: fn(&ApiRow) -> u64) -> Option<f64> {
    knows_authors(record).then(|| record.intervals.iter().map(|row| read(&row.api)).sum::<u64>() as f64)
}

/// The subject's samples in the steady phase, by time in milliseconds.
fn steady(record: &Record) -> Vec<(u64, Process)> {
    record.samples_in_turn().filter_map(|row| Some((row.t_ms, row.subject?))).collect()
}

fn most(record: &Record, read: fn(&Process) -> u64) -> Option<f64> {
    record.samples.iter().filter_map(|row| Some(read(row.subject.as_ref()?))).max().map(|most| most as f64)
}

/// The median and the range of some values, as the value and interval of a figure.
fn spread(values: &[f64]) -> Option<Reading> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    Some(Reading { value: median(values), interval: Some((least, most)), burst: 1.0 })
}

fn memory(record: &Record) -> Option<Reading> {
    let values: Vec<f64> = steady(record).iter().map(|(_, process)| process.rss_bytes as f64).collect();
    spread(&values)
}

fn heap(record: &Record) -> Option<Reading> {
    let values: Vec<f64> = record
        .metrics
        .iter()
        .filter(|row| record.phase_at(row.t_ms) == Phase::Steady)
        .filter_map(|row| Some(row.heap_bytes? as f64))
        .collect();
    spread(&values)
}

/// The growth rate of the resident set, as `memory.growth` judges it. None if the process was started again, because
/// the new process begins with other memory.
fn memory_slope(record: &Record) -> Option<Reading> {
    let steady = steady(record);
    let starts: BTreeSet<u32> = steady.iter().map(|(_, process)| process.starts).collect();
    if starts.len() != 1 {
        return None;
    }
    let t_s: Vec<f64> = steady.iter().map(|(t_ms, _)| *t_ms as f64 / 1000.0).collect();
    let value: Vec<f64> = steady.iter().map(|(_, process)| process.rss_bytes as f64).collect();
    let hours: Vec<f64> = t_s.iter().map(|t_s| t_s / 3600.0).collect();
    let limit = record.manifest.budgets.memory.as_ref().and_then(|memory| memory.growth.as_ref());
    let question = Question {
        series: Series { t_s: &t_s, value: &value, axis: &hours },
        budget: limit.map_or(GROWTH_BYTES_PER_HOUR, |limit| limit.bytes_per_hour as f64),
        planned_s: record.manifest.phases.steady_ms as f64 / 1000.0,
        sigma_least: SIGMA_BYTES,
        tau_least_s: growth::length::TAU_S,
        looks: 1,
    };
    let slope = growth::judge(&question).slope?;
    let sure = slope.lower.is_finite() && slope.upper.is_finite();
    Some(Reading { value: slope.estimate, interval: sure.then_some((slope.lower, slope.upper)), burst: 1.0 })
}

fn watches_slope(record: &Record) -> Option<Reading> {
    let rows = record.intervals.iter().filter(|row| row.phase == Phase::Steady && knows_authors(record));
    let points: Vec<(f64, f64)> =
        rows.map(|row| (row.end_ms as f64 / 3_600_000.0, row.api.subject_open_watches as f64)).collect();
    if points.len() < WATCH_POINTS_LEAST {
        return None;
    }
    let every = points.len().div_ceil(WATCH_POINTS);
    let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().step_by(every).unzip();
    let slope = theil_sen::slope(&x, &y, CONFIDENCE, 1.0).ok()?;
    let sure = slope.lower.is_finite() && slope.upper.is_finite();
    Some(Reading { value: slope.estimate, interval: sure.then_some((slope.lower, slope.upper)), burst: 1.0 })
}

/// Processor time of the steady phase, divided by the number of observations in this phase.
fn cpu_per_event(record: &Record) -> Option<Reading> {
    let rows: Vec<(u64, u64, u64)> = record
        .intervals
        .iter()
        .filter(|row| row.phase == Phase::Steady)
        .map(|row| (row.start_ms, row.end_ms, row.events.observations))
        .collect();
    let parts = (rows.len() / 2).min(PARTS_MOST);
    let samples: Vec<(u64, Process)> = record.samples.iter().filter_map(|row| Some((row.t_ms, row.subject?))).collect();
    // Processor time at a moment, by the nearest sample, with the process that it belongs to.
    let at = |t_ms: u64| {
        let next = samples.partition_point(|(sampled_ms, _)| *sampled_ms < t_ms);
        samples.get(next).or(samples.last()).map(|(_, process)| (process.starts, process.cpu_ms))
    };
    let of = |rows: &[(u64, u64, u64)]| {
        let (first, last) = (rows.first()?, rows.last()?);
        let (from, to) = (at(first.0)?, at(last.1)?);
        let events: u64 = rows.iter().map(|(_, _, events)| events).sum();
        let same = from.0 == to.0 && events > 0;
        same.then(|| to.1.saturating_sub(from.1) as f64 * 1000.0 / events as f64)
    };
    let value = of(&rows)?;
    let each: Option<Vec<f64>> = (parts >= PARTS_LEAST)
        .then(|| -> Option<Vec<f64>> {
            let size = rows.len().div_ceil(parts);
            rows.chunks(size).filter(|part| part.len() * 2 > size).map(of).collect()
        })
        .flatten();
    let interval = each.and_then(|each| spread(&each)).and_then(|reading| reading.interval);
    Some(Reading { value, interval, burst: 1.0 })
}
