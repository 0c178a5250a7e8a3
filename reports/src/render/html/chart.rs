//! One chart of the HTML report: its curves, ticks, limits, marks, and the values that the script shows.
//!
//! Owns the chart's data that the template draws. Positions in a chart are percent of its plot, so labels keep the
//! report's text size on any screen, and only curves are stretched.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Serialize;

use super::scale::Scale;

/// Number of decimals of a position in percent. A difference with more decimals is less than a pixel.
const PLACES: usize = 2;

#[derive(Debug)]
pub(super) struct Chart {
    pub id: Cow<'static, str>,
    pub title: Cow<'static, str>,
    /// The meaning of the vertical axis, as text.
    pub caption: Cow<'static, str>,
    pub y_ticks: Vec<Tick>,
    /// The ticks of the horizontal axis, for a chart that does not share the time axis.
    pub x_ticks: Vec<Tick>,
    pub curves: Vec<Curve>,
    /// Areas that the chart fills below the curves.
    pub fills: Vec<Fill>,
    pub limits: Vec<Tick>,
    pub marks: Vec<Mark>,
    /// A text about the chart for readers who cannot see it.
    pub summary: String,
}

/// A tick or a limit line: a position and its label.
#[derive(Debug, Clone)]
pub(super) struct Tick {
    pub at: String,
    pub label: String,
}

impl Tick {
    /// Whether the label must be below the limit line, because above the line it would cover the legend.
    pub fn is_high(&self) -> bool {
        self.at.parse::<f64>().is_ok_and(|percent| percent < 12.0)
    }
}

#[derive(Debug)]
pub(super) struct Curve {
    pub name: String,
    /// The CSS class that sets the curve's colour and stroke.
    pub class: &'static str,
    pub path: String,
    readings: Vec<Reading>,
}

/// A value of a curve as text, with its position.
#[derive(Debug)]
struct Reading {
    from: u64,
    /// The end of the time range of the value; none if the value is that of one moment.
    until: Option<u64>,
    words: String,
}

/// A value that holds for a range of the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub from: u64,
    pub until: u64,
    pub value: f64,
}

#[derive(Debug)]
pub(super) struct Fill {
    pub class: &'static str,
    pub path: String,
}

/// A mark for an event on the horizontal axis.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub at: String,
    pub class: &'static str,
    pub label: String,
}

/// The values of a chart as texts, for the script.
#[derive(Serialize)]
pub(super) struct Readings<'a> {
    id: &'a str,
    curves: Vec<CurveReadings<'a>>,
}

#[derive(Serialize)]
struct CurveReadings<'a> {
    name: &'a str,
    class: &'a str,
    t: Vec<u64>,
    /// For values that hold for a range, the end of each range.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    e: Vec<u64>,
    v: Vec<&'a str>,
}

impl Chart {
    /// A chart of curves, with identifier, title and caption.
    pub fn new(
        (id, title, caption): (
            impl Into<Cow<'static, str>>,
            impl Into<Cow<'static, str>>,
            impl Into<Cow<'static, str>>,
        ),
        (scale, words): (Scale, &dyn Fn(f64) -> String),
        curves: Vec<Curve>,
        summary: String,
    ) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            caption: caption.into(),
            y_ticks: y_ticks(scale, words),
            x_ticks: Vec::new(),
            curves,
            fills: Vec::new(),
            limits: Vec::new(),
            marks: Vec::new(),
            summary,
        }
    }

    /// The values of the chart as texts, for the script.
    pub fn readings(&self) -> Readings<'_> {
        let curves = self.curves.iter().map(|curve| CurveReadings {
            name: &curve.name,
            class: curve.class,
            t: curve.readings.iter().map(|reading| reading.from).collect(),
            e: curve.readings.iter().filter_map(|reading| reading.until).collect(),
            v: curve.readings.iter().map(|reading| reading.words.as_str()).collect(),
        });
        Readings { id: &self.id, curves: curves.collect() }
    }
}

/// The SVG path of a curve through points of (x percent, value). Where two points are farther apart in x than `gap`,
/// the curve is broken.
pub(super) fn path(points: &[(f64, f64)], scale: Scale, gap: f64) -> String {
    let mut path = String::new();
    let mut before: Option<f64> = None;
    for (x, value) in points {
        let connected = before.is_some_and(|before| x - before <= gap);
        path.push(if connected { 'L' } else { 'M' });
        path.push_str(&position(*x));
        path.push(' ');
        path.push_str(&position(100.0 - scale.percent(*value)));
        if !connected {
            // A lonely point is still a dot, because the stroke has round ends.
            path.push_str("h0");
        }
        before = Some(*x);
    }
    path
}

impl Curve {
    pub fn over_time(
        name: impl Into<String>,
        class: &'static str,
        points: &[(u64, f64)],
        (length_ms, gap_ms): (u64, u64),
        scale: Scale,
        words: &dyn Fn(f64) -> String,
    ) -> Self {
        let x = |t_ms: u64| t_ms as f64 / length_ms.max(1) as f64 * 100.0;
        let places: Vec<(f64, f64)> = points.iter().map(|(t_ms, value)| (x(*t_ms), *value)).collect();
        Self {
            name: name.into(),
            class,
            path: path(&places, scale, x(gap_ms)),
            readings: points
                .iter()
                .map(|(t_ms, value)| Reading { from: *t_ms, until: None, words: words(*value) })
                .collect(),
        }
    }

    /// A curve of values that each hold for a range: a level line over the range, and a vertical line where the next
    /// value begins. A sloping line would begin before the cause of a change. Where values are missing, the curve of
    /// the steps is broken.
    pub fn steps(
        name: impl Into<String>,
        class: &'static str,
        steps: &[Step],
        length: u64,
        scale: Scale,
        words: &dyn Fn(f64) -> String,
    ) -> Self {
        let x = |at: u64| position(at.min(length) as f64 / length.max(1) as f64 * 100.0);
        let mut path = String::new();
        let mut end = None;
        for step in steps {
            let y = position(100.0 - scale.percent(step.value));
            // Writing to a String cannot fail.
            let _ = match end {
                Some(end) if end == step.from => write!(path, "V{y}H{}", x(step.until)),
                _ => write!(path, "M{} {y}H{}", x(step.from), x(step.until)),
            };
            end = Some(step.until);
        }
        let reading = |step: &Step| Reading { from: step.from, until: Some(step.until), words: words(step.value) };
        Self { name: name.into(), class, path, readings: steps.iter().map(reading).collect() }
    }

    /// A dot for each value in the middle of its range of the axis. The script shows the text of a value for the whole
    /// range.
    pub fn dots(
        name: impl Into<String>,
        class: &'static str,
        dots: &[(Step, (u64, u64))],
        length: u64,
        scale: Scale,
        words: &dyn Fn(f64) -> String,
    ) -> Self {
        let x = |step: &Step| u64::midpoint(step.from, step.until) as f64 / length.max(1) as f64 * 100.0;
        let places: Vec<(f64, f64)> = dots.iter().map(|(step, _)| (x(step), step.value)).collect();
        let reading = |(step, (from, until)): &(Step, (u64, u64))| Reading {
            from: *from,
            until: Some(*until),
            words: words(step.value),
        };
        Self {
            name: name.into(),
            class,
            // No two are close enough to be connected.
            path: path(&places, scale, f64::NEG_INFINITY),
            readings: dots.iter().map(reading).collect(),
        }
    }

    /// A straight line over time between two points; the script shows no values for it.
    pub fn line(
        name: impl Into<String>,
        class: &'static str,
        ends: [(u64, f64); 2],
        length_ms: u64,
        scale: Scale,
    ) -> Self {
        let x = |t_ms: u64| t_ms as f64 / length_ms.max(1) as f64 * 100.0;
        Self::plain(name, class, path(&ends.map(|(t_ms, value)| (x(t_ms), value)), scale, 100.0))
    }

    /// A curve of a chart whose horizontal axis is not time.
    pub fn plain(name: impl Into<String>, class: &'static str, path: String) -> Self {
        Self { name: name.into(), class, path, readings: Vec::new() }
    }
}

/// The smallest and the largest of some values; none if there are no values.
pub(super) fn reach(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |reach, value| {
        Some(reach.map_or((value, value), |(least, most): (f64, f64)| (least.min(value), most.max(value))))
    })
}

/// Ticks of a vertical axis. A position of 0 % is at the top.
fn y_ticks(scale: Scale, words: &dyn Fn(f64) -> String) -> Vec<Tick> {
    let tick = |value: f64| Tick { at: position(100.0 - scale.percent(value)), label: words(value) };
    let ticks: Vec<Tick> = scale.ticks().into_iter().map(tick).collect();
    if ticks.windows(2).all(|two| two[0].label != two[1].label) {
        return ticks;
    }
    // Half a thread would be labelled as one: only values with an exact label have a tick.
    let whole = |value: &f64| value.fract().abs() < 1e-9;
    scale.ticks().into_iter().filter(whole).map(tick).collect()
}

/// A position in percent as text, the same on every machine.
pub(super) fn position(percent: f64) -> String {
    let text = format!("{percent:.PLACES$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ticks_say_the_same() {
        let count = |value: f64| format!("{value:.0}");
        let labels = |most: f64| -> Vec<(String, String)> {
            y_ticks(Scale::linear(most, 1.0), &count).into_iter().map(|tick| (tick.at, tick.label)).collect()
        };
        let text = |ticks: &[(&str, &str)]| -> Vec<(String, String)> {
            ticks.iter().map(|(at, label)| ((*at).to_owned(), (*label).to_owned())).collect()
        };
        assert_eq!(labels(1.0), text(&[("100", "0"), ("0", "1")]));
        assert_eq!(labels(4.0), text(&[("100", "0"), ("75", "1"), ("50", "2"), ("25", "3"), ("0", "4")]));
    }
}
