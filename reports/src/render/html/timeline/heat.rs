//! A heat map of latency over time. The map shows the number of answers of each duration, while curves show only some
//! quantiles.

use std::fmt::Write;

use super::super::chart::{Chart, Fill, position};
use super::super::scale::{Scale, whole};
use crate::record::{BANDS, Record, band_edge_us, tag};
use crate::words::{count, micros};

/// CSS classes of the shades of the heat map, the lightest first. The lightest shade is for cells with up to a
/// thousandth of the answers of the fullest cell. Each darker shade is for about six times as many answers.
const SHADES: [&str; 5] = ["h1", "h2", "h3", "h4", "h5"];
/// For each shade, the fraction of the fullest cell's answers below which a cell has this shade.
const SHADE_BELOW: [f64; 5] = [0.001, 0.006, 0.036, 0.2, f64::INFINITY];

pub(super) fn admission(record: &Record, length_ms: u64) -> Option<Chart> {
    chart(record, length_ms, ("heat", "Admission latency, all answers", tag::RESPONSE))
}

pub(super) fn lag(record: &Record, length_ms: u64) -> Option<Chart> {
    chart(record, length_ms, ("heat-lag", "Event lag, all observations", tag::LAG))
}

fn chart(record: &Record, length_ms: u64, (id, title, tag): (&'static str, &'static str, &str)) -> Option<Chart> {
    let slices = record.latency.slices(tag);
    let used = |band: &usize| slices.iter().any(|slice| slice.bands[*band] > 0);
    let (first, last) = ((0..BANDS).find(used)?, (0..BANDS).rev().find(used)?);
    let scale = Scale::log(band_edge_us(first), band_edge_us(last));
    let fullest = slices.iter().flat_map(|slice| slice.bands).max().unwrap_or(1).max(1);
    let total: u64 = slices.iter().flat_map(|slice| slice.bands).map(u64::from).sum();
    let mut paths = SHADES.map(|_| String::new());
    let cuts = super::cuts(record, length_ms);
    for slice in slices {
        let from_ms = cuts.drawn_from_ms(slice.start_ms, slice.end_ms);
        for (band, samples) in slice.bands.iter().enumerate().filter(|(_, samples)| **samples > 0) {
            let share = f64::from(*samples) / f64::from(fullest);
            let shade = SHADE_BELOW.iter().position(|below| share <= *below).unwrap_or(0);
            cell(&mut paths[shade], (from_ms, slice.end_ms), band, length_ms, scale);
        }
    }
    let words = |value: f64| micros(whole(value));
    let names = (id, title, "the darker, the more; each shade is about six times the one before");
    let (least, most) = (words(band_edge_us(first)), words(band_edge_us(last + 1)));
    let summary = format!("{} samples between {least} and {most}", count(total));
    let fills = SHADES.into_iter().zip(paths).map(|(class, path)| Fill { class, path }).collect();
    Some(Chart { fills, ..Chart::new(names, (scale, &words), Vec::new(), summary) })
}

fn cell(path: &mut String, (from_ms, end_ms): (u64, u64), band: usize, length_ms: u64, scale: Scale) {
    let x = |t_ms: u64| t_ms.min(length_ms) as f64 / length_ms as f64 * 100.0;
    let y = |edge: usize| 100.0 - scale.percent(band_edge_us(edge));
    let (left, width) = (x(from_ms), x(end_ms) - x(from_ms));
    let (top, bottom) = (y(band + 1), y(band));
    // Writing to a String cannot fail.
    let _ = write!(path, "M{} {}h{}v{}h-{2}z", position(left), position(top), position(width), position(bottom - top));
}
