//! The result of `longhaul size` as text for a terminal and as Markdown for a project's documentation.
//!
//! Owns the tables of rows, kinds and forecasts, which the HTML page also shows.

use std::fmt::Write as _;

use super::table;
use super::terminal::plain;
use crate::outside::{code, markdown as escaped};
use crate::size::{Beside, Curve, KindCost, Row, Sizes};
use crate::words::{bytes, count, millis, percent, three_digits, whole};

/// The text in a table cell for an unknown value.
const NOTHING: &str = "–";
pub(crate) const STEP_HEADS: [&str; 11] = [
    "objects",
    "size each",
    "result",
    "ready after",
    "highest memory",
    "after start",
    "at rest",
    "processor time of start",
    "lists",
    "a relist",
    "descriptors",
];
pub(crate) const KIND_HEADS: [&str; 6] = ["kind", "memory each", "share", "objects", "requests", "how it lists"];
pub(crate) const FORECAST_HEADS: [&str; 5] = ["objects", "size each", "memory", "95 % interval", "source"];
/// How the figures were measured, for all forms of the result.
pub(crate) const HOW: &str = "Each row is a fresh start against a mock API server that holds the objects. In the first table, the objects are \
                              divided evenly among all kinds. Memory is the resident memory of all processes. A 410 for all watches \
                              causes a relist. The program handles the objects like real ones, and the figures include this work.";

/// The cells of a row, in the order of [`STEP_HEADS`].
pub(crate) fn step(row: &Row) -> [String; 11] {
    let figures = row.figures.clone().unwrap_or_default();
    let is_there = row.figures.is_some();
    let of = |value: Option<u64>, words: fn(u64) -> String| value.map_or_else(|| NOTHING.to_owned(), words);
    let relist = figures.relists.iter().find_map(|relist| {
        let took = millis(relist.took_ms?);
        Some(format!("{took}, {}, {} of processor", bytes(relist.highest_bytes), millis(relist.cpu_ms)))
    });
    [
        count(row.objects),
        if row.objects == 0 { NOTHING.to_owned() } else { bytes(row.object_bytes) },
        row.fate.words(),
        of(figures.ready_ms, millis),
        of(is_there.then_some(figures.highest_bytes), bytes),
        of(figures.after_start_bytes, bytes),
        of(figures.steady_bytes, bytes),
        of(figures.start_cpu_ms, millis),
        of(is_there.then_some(figures.list_bytes), bytes),
        relist.unwrap_or_else(|| NOTHING.to_owned()),
        of(figures.descriptors, count),
    ]
}

/// The cells of a kind, in the order of [`KIND_HEADS`].
pub(crate) fn kind(kind: &KindCost) -> [String; 6] {
    let most = kind.rows.iter().map(|row| row.objects).max().unwrap_or(0);
    let failed = kind.rows.iter().find(|row| row.whole().is_none()).map(|row| row.fate.words());
    let each = match (&kind.curve, failed) {
        (_, Some(words)) => words,
        (Some(curve), None) => per_object(curve),
        (None, None) => NOTHING.to_owned(),
    };
    let how = match (kind.form.is_watched, kind.form.is_streamed, kind.form.is_paged) {
        (true, true, _) => "streamed by its watch",
        (true, false, true) => "pages, then a watch",
        (true, false, false) => "a list, then a watch",
        (false, _, _) => "lists only",
    };
    [
        kind.resource.clone(),
        each,
        kind.share.map_or_else(|| NOTHING.to_owned(), percent),
        count(most),
        kind.form.words(),
        how.to_owned(),
    ]
}

/// The memory per object with its interval.
pub(crate) fn per_object(curve: &Curve) -> String {
    let each = bytes(whole(curve.bytes_per_object));
    let half = curve.bytes_per_object_half.map(|half| format!(" ± {}", bytes(whole(half)))).unwrap_or_default();
    format!("{each}{half}")
}

/// The cells of all forecasts of a curve, in the order of [`FORECAST_HEADS`].
pub(crate) fn forecasts(curve: &Curve) -> Vec<[String; 5]> {
    let rows = curve.forecasts.iter().map(|forecast| {
        let interval = forecast.lower_bytes.zip(forecast.upper_bytes);
        let interval = interval.map(|(lower, upper)| format!("{} to {}", bytes(lower), bytes(upper)));
        let source = forecast.beyond_times.map_or_else(
            || "within the played points".to_owned(),
            |times| format!("forecast, {} times beyond the played points", three_digits(times)),
        );
        [
            count(forecast.objects),
            bytes(curve.object_bytes),
            bytes(forecast.bytes),
            interval.unwrap_or_else(|| NOTHING.to_owned()),
            source,
        ]
    });
    rows.collect()
}

/// One sentence about a curve.
pub(crate) fn sentence(curve: &Curve, limit: Option<u64>) -> String {
    let mut text = format!(
        "Objects of {}: {} of memory per object and {} without objects. Growth of the memory: {}; of the processor time of the start: {}.",
        bytes(curve.object_bytes),
        per_object(curve),
        bytes(whole(curve.base_bytes)),
        curve.memory.words(),
        curve.start.words()
    );
    if let Some((limit, at)) = limit.zip(curve.limit_at) {
        let far = if at > curve.played_to { ", which is a forecast" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(text, " The memory reaches the limit of {} at about {} objects{far}.", bytes(limit), count(at));
    }
    text
}

/// The limit and how it is enforced, in one sentence.
pub(crate) fn limit(sizes: &Sizes) -> Option<String> {
    let limit = sizes.limit.as_ref()?;
    let size = bytes(limit.bytes);
    Some(match (&limit.enforced_by, &limit.why_not) {
        (Some(version), _) => format!("A cgroup ({version}) limits the program to {size}."),
        (None, why) => {
            let why = why.as_deref().unwrap_or("no cgroup could be made");
            format!("Nothing enforces the limit of {size} here: {why}.")
        }
    })
}

/// Where and when the result was measured.
pub(crate) fn place(sizes: &Sizes) -> String {
    let machine = &sizes.machine;
    format!(
        "Measured on {} by Longhaul {} with {} processors ({}), {} of memory and Linux {}.",
        sizes.started_at,
        sizes.longhaul,
        machine.cores,
        machine.cpu,
        bytes(machine.memory_bytes),
        machine.kernel
    )
}

/// The result of `longhaul size` as text for a terminal.
pub fn size(sizes: &Sizes) -> String {
    let mut text = String::new();
    let rows: Vec<[String; 11]> = std::iter::once(&sizes.base).chain(&sizes.steps).map(step).collect();
    let rows: Vec<[String; 11]> = rows.into_iter().map(|row| row.map(|cell| plain(&cell))).collect();
    text.push_str(&table::columns(STEP_HEADS, &rows, &[0, 1, 3, 4, 5, 6, 7, 8, 10]));
    if !sizes.kinds.is_empty() {
        text.push('\n');
        let rows: Vec<[String; 6]> = sizes.kinds.iter().map(|one| kind(one).map(|cell| plain(&cell))).collect();
        text.push_str(&table::columns(KIND_HEADS, &rows, &[1, 2, 3]));
    }
    let bytes = sizes.limit.as_ref().map(|limit| limit.bytes);
    text.push('\n');
    let sentences = sizes.curves.iter().map(|curve| sentence(curve, bytes)).chain(limit(sizes));
    let findings = sizes.findings.iter().map(|finding| finding.sentence.clone());
    for line in sentences.chain(findings).chain(sizes.notes.iter().map(|note| format!("note: {note}"))) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", plain(&line));
    }
    text
}

/// The result of `longhaul size` as Markdown for a project's documentation.
pub fn size_markdown(sizes: &Sizes) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut text, sizes);
    text
}

fn write(out: &mut String, sizes: &Sizes) -> std::fmt::Result {
    writeln!(out, "# Memory and start by number of objects: {}\n", escaped(&sizes.title()))?;
    for finding in &sizes.findings {
        writeln!(out, "- **{}**", escaped(&finding.sentence))?;
    }
    let bytes = sizes.limit.as_ref().map(|limit| limit.bytes);
    for line in sizes.curves.iter().map(|curve| sentence(curve, bytes)).chain(limit(sizes)) {
        writeln!(out, "- {}", escaped(&line))?;
    }
    writeln!(out)?;
    head(out, &STEP_HEADS)?;
    for row in std::iter::once(&sizes.base).chain(&sizes.steps) {
        line(out, &step(row))?;
    }
    if !sizes.kinds.is_empty() {
        writeln!(out, "\n## What each kind costs\n")?;
        head(out, &KIND_HEADS)?;
        for one in &sizes.kinds {
            line(out, &kind(one))?;
        }
        writeln!(
            out,
            "\nKinds that are not in this table cost nothing: the program neither lists nor watches them. Leases, events \
             and CustomResourceDefinitions are not measured."
        )?;
    }
    writeln!(out, "\n## Memory to ask for\n")?;
    head(out, &FORECAST_HEADS)?;
    for row in sizes.curves.iter().flat_map(forecasts) {
        line(out, &row)?;
    }
    writeln!(out, "\n## How it was measured\n\n{HOW}\n\n{}\n", escaped(&place(sizes)))?;
    for note in &sizes.notes {
        writeln!(out, "- {}", escaped(note))?;
    }
    writeln!(out, "- repeat: {}", code(&sizes.repeat))
}

fn head(out: &mut String, heads: &[&str]) -> std::fmt::Result {
    writeln!(out, "| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()))
}

fn line(out: &mut String, cells: &[String]) -> std::fmt::Result {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    writeln!(out, "| {} |", cells.join(" | "))
}

/// Two results side by side, for a terminal.
pub fn size_beside(both: &Beside) -> String {
    let words = |figure: &str, value: u64| if figure == "time to ready" { millis(value) } else { bytes(value) };
    let rows: Vec<[String; 6]> = both
        .differences
        .iter()
        .map(|one| {
            let clear = if one.is_clear { "differs" } else { "" };
            let ratio = format!("{} {clear}", three_digits(one.ratio));
            let of = format!("{} ({}) of {}", count(one.objects), plain(&one.of), bytes(one.object_bytes));
            [of, one.figure.clone(), words(&one.figure, one.a), words(&one.figure, one.b), ratio, String::new()]
        })
        .map(|row| row.map(|cell| cell.trim_end().to_owned()))
        .collect();
    let mut text = format!("A: {}\nB: {}\n\n", plain(&both.a.join(" ")), plain(&both.b.join(" ")));
    text.push_str(&table::columns(["objects", "figure", "A", "B", "B to A", ""], &rows, &[2, 3]));
    if let Some(worst) = both.worst {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\nThe highest memory of B is at most {} times that of A.", three_digits(worst));
    }
    for note in &both.notes {
        let _ = writeln!(text, "note: {}", plain(note));
    }
    text
}
