//! The chart of latencies by percentile. On the axis of this chart, each further nine (90 %, 99 %, 99.9 %) has the same
//! width.
//!
//! Owns the curves of this chart. Above the percentile with fewer than 100 samples left, the curve is faint, because
//! single samples have no statistical weight.

use super::chart::{Chart, Curve, Tick, path, position, reach};
use super::scale::{Scale, whole};
use crate::record::{Phase, Record, SAMPLES_BEYOND, tag};
use crate::statistics::hlog::{self, Histogram};
use crate::words::{counted, micros};

/// Number of points of a curve for each nine, such as from 99 % to 99.9 %.
const POINTS_PER_NINE: f64 = 40.0;
/// Maximum number of nines on the axis of the chart: up to 99.9999 %.
const NINES_MOST: f64 = 6.0;

/// A curve before it is drawn: its name, the CSS classes where it is certain and where it is uncertain, and its
/// samples.
type Drawn = (&'static str, &'static str, &'static str, Option<Histogram>);

const CAPTION: &str = "steady phase; faint where fewer than 100 samples lie beyond";

/// The latency chart of a run; none if the run has no latencies.
pub(super) fn distribution(record: &Record) -> Option<Chart> {
    let wanted = [
        ("admission, from the planned start", "c1", "c1 faint", steady(record, tag::RESPONSE)),
        ("admission, from the real start", "c3", "c3 faint", steady(record, tag::SERVICE)),
        ("reads of the API", "c1", "c1 faint", steady(record, tag::CALLS_READ)),
        ("event lag", "c2", "c2 faint", record.latency.whole(tag::LAG)),
        ("generator's own lateness", "c4 thin", "c4 faint", steady(record, tag::LATENESS)),
    ];
    chart("distribution", "Latency by percentile", wanted.into())
}

/// Reads one kind of latency of a run; none if the run does not have it.
type Measured = fn(&Record) -> Option<Histogram>;

/// The charts of two runs, one for each kind of latency that at least one run has.
pub(super) fn pair(a: &Record, b: &Record) -> Vec<Chart> {
    let kinds: [(&str, &str, Measured); 4] = [
        ("response-percentiles", "Admission latency, from the planned start", |run| steady(run, tag::RESPONSE)),
        ("service-percentiles", "Admission latency, from the real start", |run| steady(run, tag::SERVICE)),
        ("lag-percentiles", "Event lag", |run| run.latency.whole(tag::LAG)),
        ("lateness-percentiles", "Generator's own lateness", |run| steady(run, tag::LATENESS)),
    ];
    let drawn = kinds.into_iter().filter_map(|(id, title, read)| {
        chart(id, title, vec![("A", "c1", "c1 faint", read(a)), ("B", "c2", "c2 faint", read(b))])
    });
    drawn.collect()
}

fn steady(record: &Record, tag: &str) -> Option<Histogram> {
    record.latency.in_phase(tag, Phase::Steady).cloned()
}

fn chart(id: &'static str, title: &'static str, wanted: Vec<Drawn>) -> Option<Chart> {
    let drawn: Vec<_> = wanted
        .into_iter()
        .filter_map(|(name, class, faint, histogram)| Some((name, class, faint, histogram.filter(|h| !h.is_empty())?)))
        .collect();
    let nines = drawn.iter().map(|(.., h)| (h.len() as f64).log10()).fold(0f64, f64::max).clamp(2.0, NINES_MOST);
    let (least, most) = reach(drawn.iter().flat_map(|(.., h)| [h.value_at_quantile(0.1) as f64, h.max() as f64]))?;
    let scale = Scale::log(least, most);
    let mut curves = Vec::new();
    for (name, class, faint, histogram) in &drawn {
        let sure = (histogram.len() as f64 / SAMPLES_BEYOND as f64).max(1.0).log10();
        let end = (histogram.len() as f64).log10().min(nines);
        let draw = |from: f64, to: f64| path(&points(histogram, from, to, nines), scale, 100.0);
        curves.push(Curve::plain(*name, class, draw(0.0, sure.min(end))));
        if sure < end {
            curves.push(Curve::plain("", faint, draw(sure, end)));
        }
    }
    let each: Vec<String> =
        drawn.iter().map(|(name, _, _, h)| format!("{name}: {}", counted(h.len(), "sample"))).collect();
    let words = |value: f64| micros(whole(value));
    let chart = Chart::new((id, title, CAPTION), (scale, &words), curves, each.join("; "));
    Some(Chart { x_ticks: x_ticks(nines), ..chart })
}

/// Points of a curve, on an axis where position 1 is 90 % and position 2 is 99 %.
fn points(histogram: &Histogram, from: f64, to: f64, nines: f64) -> Vec<(f64, f64)> {
    let steps = u32::try_from(whole((to - from) * POINTS_PER_NINE)).unwrap_or(1).max(1);
    (0..=steps)
        .map(|step| {
            let nine = from + (to - from) * f64::from(step) / f64::from(steps);
            let value = hlog::value_at(histogram, 1.0 - 10f64.powf(-nine));
            (nine / nines * 100.0, value as f64)
        })
        .collect()
}

fn x_ticks(nines: f64) -> Vec<Tick> {
    let named = [
        (0.0, "min"),
        (std::f64::consts::LOG10_2, "p50"),
        (1.0, "p90"),
        (2.0, "p99"),
        (3.0, "p99.9"),
        (4.0, "p99.99"),
        (5.0, "p99.999"),
    ];
    named
        .iter()
        .filter(|(nine, _)| *nine <= nines)
        .map(|(nine, label)| Tick { at: position(nine / nines * 100.0), label: (*label).to_owned() })
        .collect()
}
