//! Charts of a gate with every measurement as a dot, in order. Each metric that is measured under load has a chart. One
//! further chart shows the load of the machine, which is the reason for dropped measurements.
//!
//! The axis counts measurements; each measurement is a thousand units of the axis wide. Dropped measurements have
//! another colour and a band behind them.

use std::fmt::Write;

use super::super::chart::{Chart, Curve, Step, Tick, position, reach};
use super::super::scale::Scale;
use super::super::timeline::{Axis, Band};
use crate::gate::metric::{RULES, Scale as Comparison, Unit};
use crate::gate::{Judgement, Metric, Record, Rule, Side, Slice};
use crate::render::gate::Shown;
use crate::words::{counted, three_digits};

/// Number of units of the axis for one measurement.
const SLICE: u64 = 1000;
/// Maximum number of ticks on the axis. Ticks never split a block of four measurements.
const TICKS_MOST: usize = 8;
const TICK_STEPS: [usize; 8] = [1, 2, 4, 8, 16, 40, 80, 200];
const KIB: f64 = 1024.0;
const MIB: f64 = 1_048_576.0;

/// A measurement with its position on the axis.
struct Played<'a> {
    slice: &'a Slice,
    stretch: (u64, u64),
    /// The range of the axis that the two measurements of the pair cover.
    pair: (u64, u64),
    counts: bool,
}

/// The axis of the charts, and a chart for each metric that is measured under load, in the order of the report.
pub(super) fn charts(record: &Record, dropped: &[Option<String>], judgement: &Judgement) -> (Axis, Vec<Chart>) {
    let played = played(record, dropped);
    let axis = axis(record, &played);
    let drawn = RULES.iter().filter_map(|rule| metric(rule, &played, judgement, axis.length_ms));
    let mut charts: Vec<Chart> = drawn.collect();
    charts.extend(machine(&played, axis.length_ms));
    (axis, charts)
}

fn played<'a>(record: &'a Record, dropped: &[Option<String>]) -> Vec<Played<'a>> {
    let pair_of = |slice: &Slice| (slice.session, slice.block, slice.place / 2);
    let slices = &record.slices;
    let each = (0..).zip(slices).map(|(index, slice)| {
        let same = |other: usize| slices.get(other).is_some_and(|one| pair_of(one) == pair_of(slice));
        // The partner comes before or after it.
        let first = if index > 0 && same(index - 1) { index - 1 } else { index };
        let last = if same(index + 1) { index + 1 } else { index };
        let start = |index: usize| index as u64 * SLICE;
        Played {
            slice,
            stretch: (start(index), start(index + 1)),
            pair: (start(first), start(last + 1)),
            counts: (first..=last).all(|one| dropped.get(one).is_none_or(Option::is_none)),
        }
    });
    each.collect()
}

fn axis(record: &Record, played: &[Played<'_>]) -> Axis {
    let slices = played.len();
    let length = (slices as u64 * SLICE).max(1);
    let x = |at: u64| position(at as f64 / length as f64 * 100.0);
    let step = TICK_STEPS.into_iter().find(|step| slices / step <= TICKS_MOST).unwrap_or(1000);
    let tick = |index: usize| Tick { at: x(index as u64 * SLICE + SLICE / 2), label: (index + 1).to_string() };
    let mut bands = String::new();
    for one in played.iter().filter(|one| !one.counts) {
        // Writing to a String cannot fail.
        let _ = write!(bands, "M{} 0H{}V100H{0}z", x(one.stretch.0), x(one.stretch.1));
    }
    let mut sessions: Vec<(u32, u64, u64)> = Vec::new();
    for (slice, one) in record.slices.iter().zip(played) {
        match sessions.last_mut() {
            Some((number, _, end)) if *number == slice.session => *end = one.stretch.1,
            _ => sessions.push((slice.session, one.stretch.0, one.stretch.1)),
        }
    }
    let session = |(number, from, to): (u32, u64, u64)| Band {
        left: x(from),
        width: x(to - from),
        label: if number == 1 { "session 1".to_owned() } else { format!("session {number}, to confirm") },
        hits: String::new(),
        lane: 0,
        room: None,
    };
    Axis {
        length_ms: length,
        ticks: (0..slices).step_by(step).map(tick).collect(),
        faults: Vec::new(),
        bands,
        hits: Vec::new(),
        phases: sessions.into_iter().map(session).collect(),
        lanes: 0,
    }
}

/// The dots of a series in a chart, each with the range of the axis for which its value is shown.
type Dots = Vec<(Step, (u64, u64))>;

/// The dot of a measurement; none if the metric was not measured in it.
fn dot(one: &Played<'_>, value: Option<f64>, read_for: (u64, u64)) -> Option<(Step, (u64, u64))> {
    let value = value.filter(|value| value.is_finite())?;
    Some((Step { from: one.stretch.0, until: one.stretch.1, value }, read_for))
}

fn metric(rule: &'static Rule, played: &[Played<'_>], judgement: &Judgement, length: u64) -> Option<Chart> {
    let row = judgement.rows.iter().find(|row| row.metric == rule.metric);
    let read = |one: &Played<'_>| one.slice.values.get(&rule.metric).copied();
    let side = |side: Side| -> Dots {
        let slices = played.iter().filter(|one| one.counts && one.slice.side == side);
        slices.filter_map(|one| dot(one, read(one), one.pair)).collect()
    };
    let (a, b) = (side(Side::A), side(Side::B));
    let out: Dots =
        played.iter().filter(|one| !one.counts).filter_map(|one| dot(one, read(one), one.stretch)).collect();
    let values = || [&a, &b, &out].into_iter().flatten().map(|(step, _)| step.value);
    let (least, most) = reach(values())?;
    // Without any failed request there is no chart.
    if rule.metric == Metric::Failures && most <= 0.0 {
        return None;
    }
    let limit = row.map(|row| {
        if matches!(rule.scale, Comparison::Ratio { .. }) { row.a * (1.0 + row.limit) } else { row.a + row.limit }
    });
    // A distant limit would press the slices to a line.
    let limit = limit.filter(|limit| *limit <= most + (most - least).max(most.abs() / 10.0));
    let scale = Scale::part(least, limit.unwrap_or(most).max(most), unit(rule, most));
    let words = |value: f64| rule.value(value);
    let middle = |name: &str, class, value: f64| Curve::line(name, class, [(0, value), (length, value)], length, scale);
    let mut curves = vec![
        Curve::dots("A", "c1 dots", &a, length, scale, &words),
        Curve::dots("B", "c2 dots", &b, length, scale, &words),
    ];
    if let Some(row) = row {
        curves.push(middle("median of A", "c1 thin", row.a));
        curves.push(middle("median of B", "c2 thin", row.b));
    }
    if !out.is_empty() {
        curves.push(Curve::dots("not counted", "c4 dots", &out, length, scale, &words));
    }
    let told = row.map(Shown::of).map(|row| format!("B {}, surely {}: {}", row.change, row.between, row.word));
    let line = |limit: f64| Tick {
        at: position(100.0 - scale.percent(limit)),
        label: row.map_or_else(String::new, |row| format!("matters from {}", row.shown(row.limit))),
    };
    let caption = told.clone().unwrap_or_default();
    let summary = format!(
        "{} between {} and {}{}",
        counted(values().count() as u64, "slice"),
        words(least),
        words(most),
        told.map(|told| format!("; {told}")).unwrap_or_default()
    );
    let names = (rule.metric.key(), capital(rule.name), caption);
    let limits = limit.map(line).into_iter().collect();
    Some(Chart { limits, ..Chart::new(names, (scale, &words), curves, summary) })
}

fn unit(rule: &Rule, most: f64) -> f64 {
    match rule.unit {
        Unit::Bytes if most >= 4.0 * MIB => MIB,
        Unit::Bytes if most >= 4.0 * KIB => KIB,
        Unit::Bytes | Unit::Micros | Unit::Count => 1.0,
        Unit::Share => 0.01,
    }
}

fn machine(played: &[Played<'_>], length: u64) -> Option<Chart> {
    let of = |read: fn(&Slice) -> Option<f64>| -> Dots {
        let share = |one: &Played<'_>| Some(read(one.slice)? * 100.0);
        played.iter().filter_map(|one| dot(one, share(one), one.stretch)).collect()
    };
    let lines = [
        ("waited for a processor", "c1 dots", of(|slice| slice.pressure.cpu)),
        ("waited for the disk", "c3 dots", of(|slice| slice.pressure.io)),
        ("taken by other guests", "c2 dots", of(|slice| slice.pressure.steal)),
    ];
    let most = lines.iter().flat_map(|(.., dots)| dots).map(|(step, _)| step.value).reduce(f64::max)?;
    let scale = Scale::linear(most, 1.0);
    let words = |value: f64| format!("{} %", three_digits(value));
    let drawn = lines.iter().filter(|(.., dots)| !dots.is_empty());
    let names = (
        "machine",
        "Pressure on the machine",
        "share of the slice's time; the machine's bursts, and not the builds, are why slices are left out",
    );
    let curves = drawn.map(|(name, class, dots)| Curve::dots(*name, class, dots, length, scale, &words)).collect();
    Some(Chart::new(names, (scale, &words), curves, format!("at most {}", words(most))))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
