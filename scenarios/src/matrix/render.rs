//! The table of the matrix as Markdown, and as an HTML page that works offline. Markdown and HTML show the same cells
//! in the same wording.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use askama::Template;

use super::table::{Cell, ColumnHead, Outcome, RowHead, Table};

/// The text in a table cell without a result.
const NOTHING: &str = "–";
/// Text on clients that kept their own timeouts and intervals. If clients used shortened settings, the table lists
/// these settings for each client.
const OWN_CLOCKS: &str = " Every client kept its own limits for silence and between lists: where the list of clocks \
    says “as the scenario states”, the client used its default.";

fn clocks(table: &Table) -> String {
    let mut text = if table.own_clocks { OWN_CLOCKS } else { "" }.to_owned();
    if table.clock_rate > 1 {
        let _ = write!(
            text,
            " The clients' clocks ran {} times faster, and lifetimes on the server were shorter by the same factor. All times are by those \
             clocks: an answer of ten milliseconds counts as {} ms.",
            table.clock_rate,
            10 * table.clock_rate
        );
    }
    text
}

pub fn markdown(table: &Table) -> String {
    let mut lines = vec![introduction(table), String::new()];
    let heads: Vec<String> = table.columns.iter().map(|column| escape(&head(column))).collect();
    lines.push(format!("| fault | {} |", heads.join(" | ")));
    lines.push(format!("| --- |{}", " --- |".repeat(heads.len())));
    for row in &table.rows {
        let cells = table.columns.iter().map(|column| escape(&line(table.cell(&row.id, &column.id))));
        let cells: Vec<String> = cells.collect();
        let head = format!("{} `{}`, {}", escape(&row.row), row.id, length(row));
        lines.push(format!("| {head} | {} |", cells.join(" | ")));
    }
    lines.extend([String::new(), "The rows:".to_owned(), String::new()]);
    for row in &table.rows {
        let references: Vec<String> = row.reference.iter().map(|reference| escape(reference)).collect();
        lines.push(format!("- {} `{}`: {} {}", escape(&row.row), row.id, escape(&row.question), references.join(", ")));
    }
    lines.extend([String::new(), "The clocks of the clients:".to_owned(), String::new()]);
    for column in distinct(table) {
        lines.push(format!("- {}: {}", escape(&column.client), escape(&column.clocks)));
    }
    lines.join("\n") + "\n"
}

/// The length of a bug's runs as text, because the table shows no client's action after this time.
fn length(row: &RowHead) -> String {
    reports::words::millis(row.length_ms)
}

fn introduction(table: &Table) -> String {
    let clocks = clocks(table);
    format!(
        "Measured on {} with Longhaul {}, one run a cell, mock control plane. `passed`: the fault was hit, and the client kept \
         every budget of the scenario. `saw nothing`: the fault was hit, and the client reported no event in the whole run. \
         `not hit`: the client sent no request that the named fault acts on. A verdict holds for the length of the run, which \
         stands beside the name of the scenario: a client with longer limits may recover later. Times count from the fault's first hit: *asks* is \
         the client's next request for the resource, *sees* the first version committed afterwards that the client \
         reported.{clocks}",
        table.date, table.longhaul
    )
}

fn head(column: &ColumnHead) -> String {
    let http = column.http.map(|version| format!(", HTTP/{version}")).unwrap_or_default();
    format!("{} {} ({}{http})", column.client, column.version, column.mode)
}

fn line(cell: Option<&Cell>) -> String {
    let Some(cell) = cell else { return NOTHING.to_owned() };
    let time = cell.time().map(|time| format!(" ({time})")).unwrap_or_default();
    // A cell shows only the first line; the output of a failed installation is long.
    let text = cell.outcome.text();
    format!("{}{time}", text.lines().next().unwrap_or_default())
}

/// Escapes text from other programs for a Markdown table.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '<' | '*' | '[' | ']' => escaped.extend(['\\', character]),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// The first column of each client, because all columns of a client have the same timeouts.
fn distinct(table: &Table) -> Vec<&ColumnHead> {
    let mut found: Vec<&ColumnHead> = Vec::new();
    for column in &table.columns {
        if !found.iter().any(|known| known.client == column.client) {
            found.push(column);
        }
    }
    found
}

#[derive(Template)]
#[template(path = "matrix.html")]
struct Page<'a> {
    table: &'a Table,
    rows: Vec<Row<'a>>,
    clocks: Vec<&'a ColumnHead>,
    own_clocks: String,
    /// The values by which cells can be filtered.
    outcomes: Vec<String>,
}

struct Row<'a> {
    head: &'a RowHead,
    length: String,
    cells: Vec<Shown>,
}

struct Shown {
    class: &'static str,
    text: String,
    /// The values by which this cell can be filtered, separated by `|`.
    words: String,
    time: String,
    hover: String,
}

/// The table as an HTML page that loads nothing.
pub fn html(table: &Table) -> Result<String, askama::Error> {
    let shown = |row: &RowHead, column: &ColumnHead| match table.cell(&row.id, &column.id) {
        None => Shown {
            class: "none",
            text: NOTHING.to_owned(),
            words: String::new(),
            time: String::new(),
            hover: String::new(),
        },
        Some(cell) => Shown {
            class: class(&cell.outcome),
            text: cell.outcome.text().lines().next().unwrap_or_default().to_owned(),
            words: words(&cell.outcome).join("|"),
            time: cell.time().unwrap_or_default(),
            hover: [cell.reason.as_str(), cell.command.as_str()].join("\n").trim().to_owned(),
        },
    };
    let row = |row| Row {
        head: row,
        length: length(row),
        cells: table.columns.iter().map(|column| shown(row, column)).collect(),
    };
    let own_clocks = clocks(table);
    let outcomes: BTreeSet<String> = table.cells.iter().flat_map(|cell| words(&cell.outcome)).collect();
    let outcomes = outcomes.into_iter().collect();
    Page { table, rows: table.rows.iter().map(row).collect(), clocks: distinct(table), own_clocks, outcomes }.render()
}

/// The filter values of an outcome: each broken promise of a failure, or the name of another outcome.
fn words(outcome: &Outcome) -> Vec<String> {
    match outcome {
        Outcome::Failed { words } => {
            std::iter::once("failed").chain(words.iter().map(String::as_str)).map(str::to_owned).collect()
        }
        Outcome::NotHit { .. } => vec!["not hit".to_owned()],
        Outcome::Skipped { .. } => vec!["skipped".to_owned()],
        other => vec![other.text()],
    }
}

fn class(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed { .. } | Outcome::SawNothing => "failed",
        Outcome::NotHit { .. } | Outcome::OtherHttp | Outcome::NotApplicable { .. } | Outcome::Skipped { .. } => "none",
        Outcome::Inconclusive => "open",
    }
}

#[cfg(test)]
mod tests;
