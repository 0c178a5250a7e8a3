//! The time line of a report: one time axis, one chart for each group of values, and faults as coloured bands behind
//! all charts.
//!
//! Owns the choice of values that are drawn over time. All charts of a report have the same width and axis, so that
//! causes and effects line up.

use units::Span;

use super::chart::{Chart, Curve, Mark, Step, Tick, position, reach};
use super::scale::{Scale, whole};
use crate::ledger::Outcome;
use crate::record::{Interval, Quantiles, Record, tag};
use crate::words::{count, counted, micros, three_digits};

mod faults;
mod growth;
mod heat;
mod outcomes;
pub(super) mod pair;
mod resources;
pub(super) mod several;
mod steps;
pub(super) mod suite;

/// Maximum number of points of a curve over the whole run.
const POINTS: u64 = 240;
const MARKS: u64 = 60;
/// Maximum number of faults with labels; if a run has more, faults are bands without labels.
const LABELS: usize = 200;
/// The axis is divided into this number of equal ranges: faults within one range become one band.
const BAND_PARTS: u64 = 600;
/// Maximum number of marks of hits on the axis; hits at about the same time share a mark.
const HIT_MARKS: u64 = 240;
/// Maximum number of lines on which fault labels are placed; more lines would push the charts off the screen.
const LANES: usize = 3;
/// The width that a label needs on a desktop, in percent of the axis.
const LABEL_PERCENT: f64 = 14.0;
/// The allowed distances of ticks on the time axis, in seconds.
const TIME_STEPS_S: [u64; 16] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400];

/// The charts over time, with their common axis.
pub(super) struct Timeline {
    pub axis: Axis,
    pub charts: Vec<Chart>,
}

/// The common time axis of all charts.
pub(super) struct Axis {
    pub length_ms: u64,
    pub ticks: Vec<Tick>,
    pub faults: Vec<Band>,
    /// All faults as one SVG path, with coordinates from 0 to 100 in both directions.
    pub bands: String,
    pub hits: Vec<Mark>,
    pub phases: Vec<Band>,
    /// The number of lines on which fault labels are placed.
    pub lanes: usize,
}

/// A time range with a coloured band behind all charts.
pub(super) struct Band {
    pub left: String,
    pub width: String,
    pub label: String,
    /// The number of hits as text, if the band is a fault.
    pub hits: String,
    /// The line of the label, from 0, in which it covers no other label.
    pub lane: usize,
    /// The space for the label of the band. Without space, the label appears when the reader points at the band.
    pub room: Option<LabelSpace>,
}

/// The space for the label of a fault. The space for a label ends where the next label of its line begins, on a screen
/// of any width.
#[derive(Debug, PartialEq)]
pub(super) struct LabelSpace {
    pub left: String,
    pub width: String,
}

pub(super) fn timeline(record: &Record) -> Timeline {
    let length_ms = record.length_ms().max(1);
    let first =
        [admission, heat::admission, outcomes::reviews, api, staleness, lag, heat::lag, events, resources::memory];
    let rest =
        [resources::descriptors, resources::threads, resources::sockets, resources::processor, resources::pressure];
    let drawn = |charts: &[fn(&Record, u64) -> Option<Chart>]| -> Vec<Chart> {
        charts.iter().filter_map(|chart| chart(record, length_ms)).collect()
    };
    let mut charts = drawn(&first);
    charts.extend(growth::charts(record, length_ms));
    charts.extend(drawn(&rest));
    charts.extend(resources::own_series(record, length_ms));
    Timeline { axis: axis(record, length_ms), charts }
}

/// A time as text: `m:ss`, or `h:mm:ss` from an hour on.
pub(super) fn clock(ms: u64) -> String {
    let s = ms / 1000;
    if s < 3600 {
        format!("{}:{:02}", s / 60, s % 60)
    } else {
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    }
}

fn axis(record: &Record, length_ms: u64) -> Axis {
    let x = |t_ms: u64| t_ms.min(length_ms) as f64 / length_ms as f64 * 100.0;
    let band = |from_ms: u64, to_ms: u64, label: String| Band {
        left: position(x(from_ms)),
        // An event without a length is still visible.
        width: position((x(to_ms) - x(from_ms)).max(0.3)),
        label,
        hits: String::new(),
        lane: 0,
        room: None,
    };
    let played = faults::played(record);
    let mut faults: Vec<Band> = played
        .iter()
        .take(LABELS)
        .map(|fault| Band {
            hits: counted(fault.hits, "hit"),
            ..band(fault.from_ms, fault.to_ms, fault.name.to_owned())
        })
        .collect();
    let lanes = stack(&mut faults);
    let mut phases: Vec<(u64, u64, &str)> = Vec::new();
    for row in &record.intervals {
        let word = match row.phase {
            record::Phase::WarmUp => "warm-up",
            record::Phase::Steady => "steady",
            record::Phase::Drain => "drain",
        };
        match phases.last_mut() {
            Some((_, end_ms, last)) if *last == word => *end_ms = row.end_ms,
            _ => phases.push((row.start_ms, row.end_ms, word)),
        }
    }
    let phases = phases.into_iter().map(|(from, to, word)| band(from, to, word.to_owned())).collect();
    let bands = faults::bands(&played, length_ms);
    let hits = faults::hits(record, length_ms);
    Axis { faults, bands, hits, phases, lanes, ..plain_axis(length_ms) }
}

fn plain_axis(length_ms: u64) -> Axis {
    let step_s = TIME_STEPS_S.into_iter().find(|step| length_ms / 1000 / step <= 7).unwrap_or(604_800);
    let tick = |n: u64| {
        let at_ms = n * step_s * 1000;
        Tick { at: position(at_ms as f64 / length_ms.max(1) as f64 * 100.0), label: clock(at_ms) }
    };
    let ticks = (0..=length_ms / 1000 / step_s).map(tick).collect();
    let (faults, hits, phases) = (Vec::new(), Vec::new(), Vec::new());
    Axis { length_ms, ticks, faults, bands: String::new(), hits, phases, lanes: 0 }
}

/// Puts each fault label on the first line of labels on which it covers no other label, and returns the number of
/// lines.
fn stack(bands: &mut [Band]) -> usize {
    let number = |text: &str| text.parse::<f64>().unwrap_or(0.0);
    let mut ends = [0.0; LANES];
    let mut used = 1;
    // The labels of each lane: the index of the band, and the start.
    let mut labels: [Vec<(usize, f64)>; LANES] = Default::default();
    for (index, band) in bands.iter_mut().enumerate() {
        let left = number(&band.left);
        let free = ends.iter().position(|end| *end <= left);
        let lane = free.unwrap_or(LANES - 1);
        // At the right edge a label begins before its band, if that place is free.
        let begins = left.min(100.0 - LABEL_PERCENT).max(ends[lane]);
        // A label cut at the edge would not be readable.
        if free.is_some() && begins + LABEL_PERCENT <= 100.0 {
            labels[lane].push((index, begins));
        }
        ends[lane] = (left + number(&band.width)).max(begins + LABEL_PERCENT);
        band.lane = lane;
        used = used.max(lane + 1);
    }
    for lane in &labels {
        for (place, (index, begins)) in lane.iter().enumerate() {
            let next = lane.get(place + 1).map_or(100.0, |(_, begins)| *begins);
            bands[*index].room = Some(LabelSpace { left: position(*begins), width: position(next - begins) });
        }
    }
    used
}

/// Reads one quantile of a latency; none if it has no value.
type Read = fn(&Quantiles) -> Option<u64>;

/// Name, CSS class and tag of a latency, and the quantile that is drawn.
type LatencyCurve = (&'static str, &'static str, &'static str, Read);

fn latency_chart(
    record: &Record,
    length_ms: u64,
    names: (&'static str, &'static str, &'static str),
    wanted: &[LatencyCurve],
    limit: Option<(&'static str, Span)>,
) -> Option<Chart> {
    let cuts = cuts(record, length_ms);
    let steps = |tag: &str, read: Read| -> Vec<Step> {
        let slices = record.latency.slices(tag).iter();
        cuts.steps(slices.filter_map(|slice| Some((slice.start_ms, slice.end_ms, read(&slice.quantiles)? as f64))))
    };
    let drawn: Vec<_> = wanted
        .iter()
        .map(|(name, class, tag, read)| (*name, *class, steps(tag, *read)))
        .filter(|(_, _, steps)| !steps.is_empty())
        .collect();
    let (least, most) = reach(drawn.iter().flat_map(|(_, _, steps)| steps).map(|step| step.value))?;
    let limit_us = limit.map(|(_, limit)| limit.0.as_micros() as f64);
    let scale = Scale::log(least, limit_us.map_or(most, |limit| limit.max(most)));
    let words = |value: f64| micros(whole(value));
    let curve = |(name, class, steps): &(&str, &'static str, Vec<Step>)| {
        Curve::steps(*name, class, steps, length_ms, scale, &words)
    };
    let limits = limit_us
        .zip(limit)
        .map(|(us, (what, limit))| Tick { at: position(100.0 - scale.percent(us)), label: format!("{what} {limit}") });
    let limits = limits.into_iter().collect();
    let summary = format!("between {} and {}", words(least), words(most));
    Some(Chart { limits, ..Chart::new(names, (scale, &words), drawn.iter().map(curve).collect(), summary) })
}

fn admission(record: &Record, length_ms: u64) -> Option<Chart> {
    let limit = record.manifest.budgets.admission.as_ref().and_then(|budget| budget.p99).map(p99);
    let names = ("admission", "Admission latency", "response time from the planned start, logarithmic");
    let curves: [LatencyCurve; 4] = [
        ("median", "c1", tag::RESPONSE, |q| q.p50_us),
        ("p90", "c1 soft", tag::RESPONSE, |q| q.p90_us),
        ("p99", "c2", tag::RESPONSE, |q| q.p99_us),
        ("slowest", "c4 thin", tag::RESPONSE, |q| Some(q.max_us)),
    ];
    latency_chart(record, length_ms, names, &curves, limit)
}

fn api(record: &Record, length_ms: u64) -> Option<Chart> {
    let limit = record.manifest.budgets.api.as_ref().and_then(|budget| budget.p99).map(p99);
    let names = ("api", "Latency of the API", "response time from the planned start, logarithmic");
    let curves: [LatencyCurve; 4] = [
        ("reads, median", "c1", tag::CALLS_READ, |q| q.p50_us),
        ("reads, p99", "c2", tag::CALLS_READ, |q| q.p99_us),
        ("slowest read", "c4 thin", tag::CALLS_READ, |q| Some(q.max_us)),
        ("slowest write", "c3 thin", tag::CALLS_SET, |q| Some(q.max_us)),
    ];
    latency_chart(record, length_ms, names, &curves, limit)
}

fn staleness(record: &Record, length_ms: u64) -> Option<Chart> {
    let limit = record.manifest.budgets.api.as_ref().and_then(|budget| budget.staleness);
    let names = ("staleness", "Age of the API's answers", "from the next commit to the request, logarithmic");
    let curves: [LatencyCurve; 2] = [
        ("median", "c1", tag::CALLS_STALENESS, |q| q.p50_us),
        ("oldest", "c2", tag::CALLS_STALENESS, |q| Some(q.max_us)),
    ];
    latency_chart(record, length_ms, names, &curves, limit.map(|limit| ("limit", limit)))
}

fn p99(limit: Span) -> (&'static str, Span) {
    ("limit p99", limit)
}

fn lag(record: &Record, length_ms: u64) -> Option<Chart> {
    let limit = record.manifest.budgets.events.as_ref().and_then(|budget| budget.lag_p99).map(p99);
    let names = ("lag", "Event lag", "from commit to observation, logarithmic");
    let curves: [LatencyCurve; 5] = [
        ("median", "c1", tag::LAG, |q| q.p50_us),
        ("p90", "c1 soft", tag::LAG, |q| q.p90_us),
        ("slowest", "c4 thin", tag::LAG, |q| Some(q.max_us)),
        ("slowest, committed during a fault", "c2 thin", tag::LAG_FAULTED, |q| Some(q.max_us)),
        ("slowest to heal", "c3 thin", tag::HEAL, |q| Some(q.max_us)),
    ];
    latency_chart(record, length_ms, names, &curves, limit)
}

fn events(record: &Record, length_ms: u64) -> Option<Chart> {
    let cuts = cuts(record, length_ms);
    let rate = |read: fn(&record::EventCounts) -> u64| cuts.steps(rates(record, |row| Some(read(&row.events))));
    let (commits, observations) = (rate(|counts| counts.commits), rate(|counts| counts.observations));
    if record.totals().commits == 0 && record.totals().observations == 0 {
        return None;
    }
    let most = commits.iter().chain(&observations).fold(0f64, |most, step| most.max(step.value));
    let scale = Scale::linear(most, 1.0);
    let words = |value: f64| format!("{}/s", three_digits(value));
    let totals = record.totals();
    let caption = "object changes a second, each step the mean of an interval; marks show when lost and late versions were committed";
    let curves = vec![
        Curve::steps("commits", "c1", &commits, length_ms, scale, &words),
        Curve::steps("observations", "c3", &observations, length_ms, scale, &words),
    ];
    let summary = format!("{}, {}", counted(totals.commits, "commit"), counted(totals.observations, "observation"));
    let marks = marks(record, length_ms);
    Some(Chart { marks, ..Chart::new(("events", "Events", caption), (scale, &words), curves, summary) })
}

/// The times at which the steps of a run's curves are cut, because a fault begins at each of them.
fn cuts(record: &Record, length_ms: u64) -> steps::Cuts {
    steps::Cuts::new(&faults::played(record), length_ms)
}

/// A count of each interval as a rate per second: start, end and rate.
fn rates<'a>(
    record: &'a Record,
    read: impl Fn(&Interval) -> Option<u64> + 'a,
) -> impl Iterator<Item = (u64, u64, f64)> + 'a {
    record.intervals.iter().filter_map(move |row| {
        let seconds = row.end_ms.saturating_sub(row.start_ms).max(1) as f64 / 1000.0;
        Some((row.start_ms, row.end_ms, read(row)? as f64 / seconds))
    })
}

/// Marks on the axis for lost and late versions at the time of their commit. Versions that were committed at about the
/// same time share a mark.
fn marks(record: &Record, length_ms: u64) -> Vec<Mark> {
    let kinds: [(&'static str, &str, &[Outcome]); 2] = [
        ("late", "late", &[Outcome::Late, Outcome::LateGhost]),
        ("lost", "missed or ghost", &[Outcome::Missed, Outcome::Ghost, Outcome::IdentitySwap]),
    ];
    let width_ms = (length_ms / MARKS).max(1);
    let mut marks = Vec::new();
    for (class, words, outcomes) in kinds {
        // The number, and the time of the first one, which is the place of the mark, so that no mark precedes the fault
        // that caused it.
        let mut places = std::collections::BTreeMap::<u64, (u64, u64)>::new();
        for row in record.anomalies.iter().filter(|row| outcomes.contains(&row.outcome)) {
            let at_ms = row.committed_ms.unwrap_or(row.t_ms).min(length_ms);
            let place = places.entry(at_ms / width_ms).or_insert((0, at_ms));
            *place = (place.0 + 1, place.1.min(at_ms));
        }
        for (number, at_ms) in places.into_values() {
            marks.push(Mark {
                at: position(at_ms.min(length_ms) as f64 / length_ms as f64 * 100.0),
                class,
                label: format!("{} {words} from {} on", count(number), clock(at_ms)),
            });
        }
    }
    marks
}

/// Reduces a curve to at most [`POINTS`] points: the largest value of each time range, because limits are about peaks.
fn thinned(points: impl Iterator<Item = (u64, f64)>, length_ms: u64) -> Vec<(u64, f64)> {
    let width_ms = (length_ms / POINTS).max(1);
    let mut thin: Vec<(u64, f64)> = Vec::new();
    for (t_ms, value) in points {
        match thin.last_mut() {
            Some(last) if last.0 / width_ms == t_ms / width_ms => {
                if value > last.1 {
                    *last = (t_ms, value);
                }
            }
            _ => thin.push((t_ms, value)),
        }
    }
    thin
}

/// The shortest time without a point, in milliseconds, at which a curve is broken: a few intervals, or the distance of
/// a few points if that is longer.
fn gap_ms(record: &Record, length_ms: u64) -> u64 {
    let interval_ms = record.intervals.first().map_or(5000, |row| row.end_ms.saturating_sub(row.start_ms));
    (interval_ms * 3).max(length_ms / POINTS * 3)
}
