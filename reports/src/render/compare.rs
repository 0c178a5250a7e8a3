//! A comparison of several subjects under one scenario, as text for a terminal and as a decision record in Markdown.
//!
//! Owns the texts of a comparison. The decision record has the form that Nygard proposed: context, options,
//! measurements, decision. Its reader makes the decision.

use std::fmt::Write as _;

use super::table;
use super::terminal::plain;
use crate::compare::{Cell, Comparison, FigureHead, Group, Row};
use crate::outside::{code, markdown as escaped};
use crate::words::{counted, millis};

/// The text in a table cell for an unknown value.
const NOTHING: &str = "–";
/// The meaning of a rank in a comparison, for terminal, Markdown and HTML.
pub(crate) const RANKS: &str = "A rank counts the subjects that are certainly better in a figure: their whole interval is lower. There is \
                                no rank if all intervals overlap, nor for a subject that did not run to the end.";

/// A table for a terminal with the most important figures, followed by the reason why each subject that is behind is
/// behind.
pub fn compare(comparison: &Comparison) -> String {
    let mut text = format!("{}: {}\n\n", plain(&comparison.scenario), plain(&comparison.question));
    let shown = ["missed", "late", "ghosts", "longestBlind", "memory", "memorySlope", "cpuPerEvent"];
    let head = ["subject", "verdict", "missed", "late", "ghosts", "blind", "memory", "growth", "processor/event"];
    let line = |row: &Row| {
        let figure = |key: &str| short(comparison, row, key);
        let [missed, late, ghosts, blind, memory, growth, cpu] = shown.map(figure);
        [plain(&row.name), verdict(row), missed, late, ghosts, blind, memory, growth, cpu]
    };
    let rows: Vec<[String; 9]> = comparison.rows.iter().map(line).collect();
    text.push_str(&table::columns(head, &rows, &[2, 3, 4, 5, 6, 7, 8]));
    text.push('\n');
    for row in &comparison.rows {
        if let Some(why) = &row.why {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}: {}", plain(&row.name), plain(&why.sentence));
        }
    }
    for note in &comparison.notes {
        let _ = writeln!(text, "note: {}", plain(note));
    }
    let has_rank = comparison.rows.iter().flat_map(|row| row.figures.values()).any(|cell| cell.rank.is_some());
    let ranks =
        if has_rank { "#2: one subject is certainly better." } else { "No subject is certainly better in any figure." };
    let _ = writeln!(text, "\n{ranks} This is a comparison; the decision is yours.");
    text
}

/// A comparison as a decision record in Markdown, in which the decision is left open.
pub fn compare_markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_record(&mut text, comparison);
    text
}

fn write_record(out: &mut String, comparison: &Comparison) -> std::fmt::Result {
    let subjects = comparison.rows.len() as u64;
    writeln!(out, "# Which of {}: {}\n", counted(subjects, "subject"), escaped(&comparison.scenario))?;
    writeln!(out, "Status: proposed, the decision is open\n")?;
    writeln!(out, "## Context\n\n{}\n", escaped(&comparison.question))?;
    writeln!(out, "{}\n", escaped(&how(comparison)))?;
    for note in &comparison.notes {
        writeln!(out, "- {}", escaped(note))?;
    }
    writeln!(out, "- repeat: {}\n", code(&comparison.repeat))?;
    writeln!(out, "## Options\n")?;
    for row in &comparison.rows {
        writeln!(out, "- **{}**: {}", escaped(&row.name), code(&row.command))?;
    }
    writeln!(out, "\n## Measured\n\n{RANKS}\n")?;
    for group in Group::ALL {
        writeln!(out, "### {}\n", group.words())?;
        let figures = || comparison.figures.iter().filter(|figure| figure.group == group);
        let heads: Vec<String> = figures().map(|figure| escaped(&figure.name)).collect();
        writeln!(out, "| subject | verdict | {} |\n|---|---|{}", heads.join(" | "), "---|".repeat(heads.len()))?;
        for row in &comparison.rows {
            let cells: Vec<String> = figures().map(|figure| escaped(&whole(figure, row))).collect();
            writeln!(out, "| {} | {} | {} |", escaped(&row.name), verdict(row), cells.join(" | "))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "### Why\n")?;
    for row in &comparison.rows {
        match &row.why {
            Some(why) => {
                let remedy = why.remedy.as_ref().map(|remedy| format!(" {}", escaped(remedy))).unwrap_or_default();
                writeln!(
                    out,
                    "- **{}**: {}.{remedy}",
                    escaped(&row.name),
                    escaped(why.sentence.trim_end_matches('.'))
                )?;
            }
            None => writeln!(out, "- **{}**: no limit was broken.", escaped(&row.name))?,
        }
    }
    writeln!(out, "\n### What the intervals are\n")?;
    for figure in comparison.figures.iter().filter(|figure| figure.ranked) {
        writeln!(out, "- {}: {}", escaped(&figure.name), escaped(&figure.interval))?;
    }
    writeln!(out, "\n## Decision\n\nOpen.\n\n## Consequences\n\nOpen.")
}

/// How, when and where the comparison ran, in one sentence.
pub(crate) fn how(comparison: &Comparison) -> String {
    let way = if comparison.side_by_side { "side by side" } else { "one after the other" };
    format!(
        "Each was played {way} under the same scenario with seed {}, so the same load and the same faults at the same moments, from {} on, \
         by Longhaul {} on {}.",
        comparison.seed, comparison.started_at, comparison.longhaul, comparison.machine
    )
}

/// The verdict on a subject, or how far its runs came.
pub(crate) fn verdict(row: &Row) -> String {
    match (row.verdict, row.fate) {
        (Some(verdict), crate::compare::Fate::Ran) => verdict.word().to_owned(),
        (Some(verdict), fate) => format!("{}, {}", verdict.word(), fate.words()),
        (None, fate) => fate.words().to_owned(),
    }
}

fn short(comparison: &Comparison, row: &Row, key: &str) -> String {
    let unit = comparison.figures.iter().find(|figure| figure.key == key).map(|figure| figure.unit);
    let (Some(unit), Some(cell)) = (unit, row.figures.get(key)) else { return NOTHING.to_owned() };
    let rank = cell.rank.map(|rank| format!(" #{rank}")).unwrap_or_default();
    format!("{}{rank}", unit.words(cell.value))
}

pub(crate) fn between(figure: &FigureHead, cell: &Cell) -> Option<String> {
    let (lower, upper) = (cell.lower?, cell.upper?);
    let round = |value: f64| if figure.unit == crate::compare::Unit::Count { value.round() } else { value };
    Some(format!("{} to {}", figure.unit.words(round(lower)), figure.unit.words(round(upper))))
}

fn whole(figure: &FigureHead, row: &Row) -> String {
    let Some(cell) = row.figures.get(&figure.key) else { return NOTHING.to_owned() };
    let between = between(figure, cell).map(|between| format!(" ({between})")).unwrap_or_default();
    let rank = cell.rank.map(|rank| format!(", rank {rank}")).unwrap_or_default();
    format!("{}{between}{rank}", figure.unit.words(cell.value))
}

pub(crate) fn lasted(row: &Row) -> String {
    millis(row.lasted_ms)
}
