//! The HTML page of `longhaul size`: its tables, and one picture for each curve.
//!
//! Owns the pictures. Measured points are circles; a dashed line with a band shows the forecast.

use std::fmt::Write as _;

use askama::Template;

use super::{Data, data_json};
use crate::render::Error;
use crate::render::size::{FORECAST_HEADS, HOW, KIND_HEADS, STEP_HEADS, forecasts, kind, limit, place, sentence, step};
use crate::size::{Curve, Row, Shape, Sizes};
use crate::words::{bytes, count, whole};

/// The right edge of a picture, as a multiple of the largest number of objects in the rows.
const BEYOND: f64 = 3.3;
/// Width and height of a picture, and the place for the texts of its axes.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;
/// Number of steps on each edge of the band around a forecast.
const BAND: u32 = 24;

#[derive(Template)]
#[template(path = "size.html")]
struct Page<'a> {
    sizes: &'a Sizes,
    name: String,
    place: String,
    how: &'static str,
    limit: Option<String>,
    sentences: Vec<String>,
    step_heads: [&'static str; 11],
    steps: Vec<(bool, [String; 11])>,
    kind_heads: [&'static str; 6],
    kinds: Vec<[String; 6]>,
    forecast_heads: [&'static str; 5],
    forecasts: Vec<(bool, [String; 5])>,
    pictures: Vec<Picture>,
    data: String,
}

/// A picture of one curve.
struct Picture {
    title: String,
    caption: String,
    svg: String,
}

/// The page, as one file that loads no other file.
pub fn size_html(sizes: &Sizes) -> Result<String, Error> {
    let bytes_max = sizes.limit.as_ref().map(|limit| limit.bytes);
    let rows = std::iter::once(&sizes.base).chain(&sizes.steps);
    let marked = |curve: &Curve| {
        let far = curve.forecasts.iter().map(|forecast| forecast.beyond_times.is_some()).collect::<Vec<_>>();
        far.into_iter().zip(forecasts(curve)).collect::<Vec<_>>()
    };
    let page = Page {
        sizes,
        name: sizes.title(),
        place: place(sizes),
        how: HOW,
        limit: limit(sizes),
        sentences: sizes.curves.iter().map(|curve| sentence(curve, bytes_max)).collect(),
        step_heads: STEP_HEADS,
        steps: rows.map(|row| (row.whole().is_some(), step(row))).collect(),
        kind_heads: KIND_HEADS,
        kinds: sizes.kinds.iter().map(kind).collect(),
        forecast_heads: FORECAST_HEADS,
        forecasts: sizes.curves.iter().flat_map(marked).collect(),
        pictures: pictures(sizes, bytes_max),
        data: data_json(&Data { length_ms: 0, unit: None, charts: Vec::new() })?,
    };
    Ok(page.render()?)
}

fn pictures(sizes: &Sizes, limit: Option<u64>) -> Vec<Picture> {
    let all = sizes.curves.iter().map(|curve| {
        let rows = sizes.steps.iter().filter(|row| row.object_bytes == curve.object_bytes).collect();
        (format!("All kinds, {} each", bytes(curve.object_bytes)), curve, rows)
    });
    let single = sizes.kinds.iter().filter_map(|kind| {
        let curve = kind.curve.as_ref()?;
        let rows: Vec<&Row> = kind.rows.iter().collect();
        Some((format!("{}, {} each", kind.resource, bytes(curve.object_bytes)), curve, rows))
    });
    let pictures = all.chain(single).map(|(title, curve, mut rows)| {
        rows.insert(0, &sizes.base);
        let (caption, svg) = (caption(curve), drawn(&title, curve, &rows, limit));
        Picture { title, caption, svg }
    });
    pictures.collect()
}

fn caption(curve: &Curve) -> String {
    match curve.memory {
        Shape::WorseThanLinear => "Circles are measured. The memory grows faster than the line.".to_owned(),
        _ => "Circles are measured. The dashed line is a forecast.".to_owned(),
    }
}

/// Positions in a picture.
struct Scale {
    x_max: f64,
    y_max: f64,
}

impl Scale {
    fn x(&self, objects: f64) -> f64 {
        LEFT + objects / self.x_max * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, memory: f64) -> f64 {
        HEIGHT - BOTTOM - (memory.clamp(0.0, self.y_max) / self.y_max) * (HEIGHT - TOP - BOTTOM)
    }
}

fn drawn(title: &str, curve: &Curve, rows: &[&Row], limit: Option<u64>) -> String {
    let at = |x: f64| curve.bytes_per_object.mul_add(x, curve.base_bytes);
    let played = (curve.played_to as f64).max(1.0);
    let points: Vec<(f64, f64)> =
        rows.iter().filter_map(|row| Some((row.objects as f64, row.whole()?.highest_bytes as f64))).collect();
    let x_max = played * BEYOND;
    let highest = points.iter().map(|(_, y)| *y).fold(at(x_max), f64::max);
    // A limit far above the curve is left out, because the curve would look flat.
    let near = limit.map(|limit| limit as f64).filter(|limit| *limit < highest * 2.0);
    let scale = Scale { x_max, y_max: near.map_or(highest, |limit| highest.max(limit)).max(1.0) * 1.08 };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        title.replace(['<', '>', '&', '"'], " ")
    );
    let mut push = |text: std::fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ = svg.write_fmt(text);
    };
    for part in 0..=4 {
        let share = f64::from(part) / 4.0;
        let (x, y) = (scale.x(share * x_max), scale.y(share * scale.y_max));
        push(format_args!("<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", WIDTH - RIGHT));
        push(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            bytes(whole(share * scale.y_max))
        ));
        let anchor = if part == 4 { "end" } else { "middle" };
        push(format_args!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            HEIGHT - 10.0,
            count(whole(share * x_max))
        ));
    }
    if let Some(band) = band(curve, &scale, played, x_max) {
        push(format_args!("<path class=\"forecast-band\" d=\"{band}\"/>"));
    }
    let line = |from: f64, to: f64| {
        format!("M{:.1} {:.1}L{:.1} {:.1}", scale.x(from), scale.y(at(from)), scale.x(to), scale.y(at(to)))
    };
    push(format_args!("<path class=\"c1\" d=\"{}\"/>", line(0.0, played)));
    push(format_args!("<path class=\"c1 forecast\" d=\"{}\"/>", line(played, x_max)));
    if let Some(limit) = near {
        let y = scale.y(limit);
        push(format_args!("<path class=\"limit\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", WIDTH - RIGHT));
        push(format_args!("<text class=\"at-limit\" x=\"{:.1}\" y=\"{:.1}\">limit</text>", LEFT + 6.0, y - 5.0));
    }
    for (x, y) in points {
        push(format_args!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4.5\"/>", scale.x(x), scale.y(y)));
    }
    svg.push_str("</svg>");
    svg
}

/// The outline of the band around the forecast, from the last measured point on.
fn band(curve: &Curve, scale: &Scale, played: f64, x_max: f64) -> Option<String> {
    let half = curve.bytes_per_object_half?;
    let at = |x: f64, sign: f64| {
        // The band has the interval of the slope; its edges are lines through the middle of the measured points.
        let away = (x - played / 2.0).abs();
        (half * away).mul_add(sign, curve.bytes_per_object.mul_add(x, curve.base_bytes))
    };
    let x = |step: u32| played + (x_max - played) * f64::from(step) / f64::from(BAND);
    let upper = (0..=BAND).map(|step| (x(step), at(x(step), 1.0)));
    let lower = (0..=BAND).rev().map(|step| (x(step), at(x(step), -1.0)));
    let mut path = String::new();
    for (number, (x, y)) in upper.chain(lower).enumerate() {
        let word = if number == 0 { 'M' } else { 'L' };
        // Writing to a String cannot fail.
        let _ = write!(path, "{word}{:.1} {:.1}", scale.x(x), scale.y(y));
    }
    Some(path + "Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::tests::{row, sizes as example};

    /// The page has all tables, a picture for every curve, no request, and no raw text of the program.
    #[test]
    fn the_page_shows_points_and_forecasts() {
        let rows = vec![row(1_000, 50, 200, &[]), row(3_000, 92, 400, &[]), row(10_000, 230, 1_100, &[])];
        let mut sizes = example(rows);
        sizes.command = vec!["<script>alert(1)</script>".to_owned()];
        let page = size_html(&sizes).unwrap();
        assert_eq!(page.matches("<svg viewBox").count(), sizes.curves.len() + sizes.kinds.len());
        assert!(page.contains("class=\"c1 forecast\"") && page.contains("forecast-band") && page.contains("<circle"));
        assert!(!page.contains("<script>alert"), "text from outside is escaped");
        assert!(!page.contains("http://") && !page.contains("https://"), "the page fetches nothing");
    }
}
