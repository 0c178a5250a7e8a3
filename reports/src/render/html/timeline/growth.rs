//! The chart of judged memory growth: the judged points, the slope with its interval, and the slope that the budget
//! allows.

use std::fmt::Write;

use super::super::chart::{Chart, Curve, Fill, position};
use super::super::scale::{Scale, whole};
use super::{gap_ms, thinned};
use crate::judge::{Fit, fits};
use crate::record::Record;
use crate::words::{bytes, millis};

const MIB: f64 = 1_048_576.0;

pub(super) fn charts(record: &Record, length_ms: u64) -> impl Iterator<Item = Chart> {
    fits(record).into_iter().map(move |fit| chart(record, length_ms, &fit))
}

fn chart(record: &Record, length_ms: u64, fit: &Fit) -> Chart {
    let ends = |line: (f64, f64)| [line.0, line.1];
    // Infinite bounds cannot be drawn.
    let values = fit.points.iter().map(|(_, value)| *value).chain(ends(fit.estimate)).chain(ends(fit.most));
    let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let scale = Scale::linear(most, MIB);
    let words = |value: f64| bytes(whole(value));
    let line = |name: &str, class, (first, last): (f64, f64)| {
        Curve::line(name, class, [(fit.span_ms.0, first), (fit.span_ms.1, last)], length_ms, scale)
    };
    let points = thinned(fit.points.iter().copied(), length_ms);
    let shape = (length_ms, gap_ms(record, length_ms));
    let mut curves = vec![
        Curve::over_time("judged", "c1 soft", &points, shape, scale, &words),
        line(&format!("budget {}", fit.limit), "limit", fit.most),
        line("slope", "c1", fit.estimate),
    ];
    if fit.from_ms > fit.span_ms.0.saturating_sub(1) && fit.from_ms > record.manifest.phases.warm_up_ms {
        let edge = [(fit.from_ms, 0.0), (fit.from_ms, most)];
        curves.push(Curve::line(format!("warm-up until {}", millis(fit.from_ms)), "c4 thin", edge, length_ms, scale));
    }
    let caption = "the judged series, its slope with the 95 % band, and the slope that the budget allows";
    let names = (fit.budget.replace('.', "-"), fit.budget, caption);
    let summary = format!("{} against {}", fit.what, fit.limit);
    let fills = band(fit, length_ms, scale).into_iter().collect();
    Chart { fills, ..Chart::new(names, (scale, &words), curves, summary) }
}

/// The area between the lower and the upper bound of the slope, whose lines cross in the middle of the judged time.
fn band(fit: &Fit, length_ms: u64, scale: Scale) -> Option<Fill> {
    let corners = [
        (fit.span_ms.0, fit.lower.0),
        (fit.span_ms.1, fit.lower.1),
        (fit.span_ms.1, fit.upper.1),
        (fit.span_ms.0, fit.upper.0),
    ];
    if corners.iter().any(|(_, value)| !value.is_finite()) {
        return None;
    }
    let mut path = String::new();
    for (index, (t_ms, value)) in corners.into_iter().enumerate() {
        let x = t_ms.min(length_ms) as f64 / length_ms.max(1) as f64 * 100.0;
        let pen = if index == 0 { 'M' } else { 'L' };
        // Writing to a String cannot fail.
        let _ = write!(path, "{pen}{} {}", position(x), position(100.0 - scale.percent(value)));
    }
    path.push('z');
    Some(Fill { class: "fit", path })
}
