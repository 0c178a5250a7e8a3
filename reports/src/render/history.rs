//! A history of runs as a table, and one figure of the history as an SVG chart.
//!
//! Owns the layout of table and chart. The chart is a complete SVG file, for a repository or a web page.

use std::fmt::Write;

use super::diff::in_unit;
use super::table::columns;
use super::terminal::{plain, word};
use crate::history::{Point, Series};
use crate::judge::Verdict;

/// Maximum number of runs in the table; the history's file also has older runs.
const ROWS_MAX: usize = 20;
/// The width of the chart of a figure's history, in SVG units.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
const MARGIN: f64 = 24.0;
/// The space for the numbers on the left of the chart, in SVG units.
const LEFT: f64 = 90.0;

/// A table of a scenario's figures: newest value, level before the last change, and size of that change. Below the
/// table are the runs in which a level changed.
pub fn history(scenario: &str, all: &[Series]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = table(&mut text, scenario, all);
    text
}

fn table(out: &mut String, scenario: &str, all: &[Series]) -> std::fmt::Result {
    let runs = all.iter().map(|series| series.points.len()).max().unwrap_or_default();
    writeln!(out, "{}: {}", plain(scenario), crate::words::counted(runs as u64, "run"))?;
    let mut rows = Vec::new();
    for series in all {
        let Some(newest) = series.points.last() else { continue };
        let told = |value: f64| in_unit(value, series.unit);
        let change = series.changes.last();
        let first = change.map_or(0, |change| change.at);
        let values: Vec<f64> = series.points.iter().skip(first).map(|point| point.value).collect();
        let level = told(statistics::quantile::median(&values));
        let (before, since) = change.map_or_else(Default::default, |change| {
            (told(change.before), series.points.get(change.at).map(of_run).unwrap_or_default())
        });
        rows.push([series.figure.clone(), told(newest.value), level, before, since]);
    }
    write!(out, "\n{}", columns(["figure", "newest", "level", "before", "since"], &rows, &[1, 2, 3]))?;
    let longest = all.iter().max_by_key(|series| series.points.len());
    let points = longest.map(|series| series.points.as_slice()).unwrap_or_default();
    writeln!(out, "\nruns")?;
    for point in points.iter().rev().take(ROWS_MAX).rev() {
        writeln!(out, "   {:13} {}", word(point.verdict), of_run(point))?;
    }
    writeln!(
        out,
        "\nThe runs were at different times, so a shift can come from the machine. `longhaul gate` compares two builds side by side."
    )
}

fn of_run(point: &Point) -> String {
    let build = point.build.as_deref().map(|build| format!("{} ", plain(build))).unwrap_or_default();
    format!("{build}{} {}", plain(&point.started_at), plain(&point.run_id))
}

/// An SVG chart of one figure over the runs of a scenario, with the figure's levels.
pub fn history_svg(scenario: &str, series: &Series) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = picture(&mut text, scenario, series);
    text
}

#[expect(clippy::cast_precision_loss, reason = "at most 256 runs")]
fn picture(out: &mut String, scenario: &str, series: &Series) -> std::fmt::Result {
    let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    let top = values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE) * 1.1;
    let x = |n: usize| LEFT + (WIDTH - LEFT - MARGIN) * n as f64 / (values.len().max(2) - 1) as f64;
    let y = |value: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * (value / top).clamp(0.0, 1.0);
    let title =
        escaped(&format!("{scenario}: {} over {}", series.figure, crate::words::counted(values.len() as u64, "run")));
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}" font-family="sans-serif" font-size="12">"#
    )?;
    writeln!(
        out,
        r##"<rect width="100%" height="100%" fill="#fff"/><text x="{MARGIN}" y="16" fill="#222">{title}</text>"##
    )?;
    for share in [0.0, 0.5, 1.0] {
        let (value, right) = (top * share, WIDTH - MARGIN);
        let told = escaped(&in_unit(value, series.unit));
        writeln!(
            out,
            r##"<path d="M{LEFT} {0:.1}H{right}" stroke="#ddd"/><text x="{1}" y="{2:.1}" text-anchor="end" fill="#555">{told}</text>"##,
            y(value),
            LEFT - 6.0,
            y(value) + 4.0
        )?;
    }
    let starts = [0].into_iter().chain(series.changes.iter().map(|change| change.at));
    let ends = series.changes.iter().map(|change| change.at).chain([values.len()]);
    for (start, end) in starts.zip(ends).filter(|(start, end)| start < end) {
        let level = y(statistics::quantile::median(&values[start..end]));
        writeln!(
            out,
            r##"<path d="M{:.1} {level:.1}H{:.1}" stroke="#b35900" stroke-width="2"/>"##,
            x(start),
            x(end - 1)
        )?;
    }
    for change in &series.changes {
        let at = f64::midpoint(x(change.at), x(change.at.saturating_sub(1)));
        writeln!(
            out,
            r##"<path d="M{at:.1} {MARGIN}V{:.1}" stroke="#b35900" stroke-dasharray="4 3"/>"##,
            HEIGHT - MARGIN
        )?;
    }
    for (n, point) in series.points.iter().enumerate() {
        let colour = if point.verdict == Verdict::Pass { "#1a5fb4" } else { "#b3261e" };
        let told =
            escaped(&format!("{}: {} ({})", of_run(point), in_unit(point.value, series.unit), word(point.verdict)));
        writeln!(
            out,
            r#"<circle cx="{:.1}" cy="{:.1}" r="3" fill="{colour}"><title>{told}</title></circle>"#,
            x(n),
            y(point.value)
        )?;
    }
    writeln!(out, "</svg>")
}

/// A text escaped for XML, without control characters.
fn escaped(text: &str) -> String {
    plain(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Unit;
    use crate::history::Change;

    fn series() -> Series {
        let point = |n: usize| Point {
            run_id: format!("run-{n}"),
            started_at: format!("2026-01-{:02}T00:00:00Z", n + 1),
            build: (n == 6).then(|| "v2 <beta>".to_owned()),
            verdict: if n == 2 { Verdict::Fail } else { Verdict::Pass },
            value: if n < 6 { 1000.0 } else { 1500.0 },
        };
        let changes = vec![Change { at: 6, before: 1000.0, after: 1500.0 }];
        Series { figure: "lag p99".to_owned(), unit: Unit::Micros, points: (0..10).map(point).collect(), changes }
    }

    #[test]
    fn the_table_names_the_run_that_changed_the_level() {
        insta::assert_snapshot!(history("smoke", &[series()]));
    }

    #[test]
    fn the_picture_has_every_run_its_levels_and_no_markup_of_others() {
        let svg = history_svg("smoke", &series());
        assert_eq!((svg.matches("<circle").count(), svg.matches("stroke-dasharray").count()), (10, 1));
        assert_eq!(svg.matches(r#"stroke-width="2""#).count(), 2);
        assert!(svg.contains("v2 &lt;beta&gt;") && !svg.contains("<beta>"));
        assert!(history_svg("smoke", &Series { points: vec![], changes: vec![], ..series() }).ends_with("</svg>\n"));
    }
}
