//! The table for people: Markdown and a page that works offline. Both show the same cells in the same words.

use askama::Template;

use super::table::{Cell, ColumnHead, Outcome, RowHead, Table};

/// Stands where nothing was run.
const NOTHING: &str = "–";

/// The table as Markdown.
pub fn markdown(table: &Table) -> String {
    let mut text = format!("{}\n\n", introduction(table));
    let heads: Vec<String> = table.columns.iter().map(|column| escape(&head(column))).collect();
    text.push_str(&format!("| fault | {} |\n", heads.join(" | ")));
    text.push_str(&format!("| --- |{}\n", " --- |".repeat(heads.len())));
    for row in &table.rows {
        let cells = table.columns.iter().map(|column| escape(&line(table.cell(&row.id, &column.id))));
        let cells: Vec<String> = cells.collect();
        text.push_str(&format!("| {} `{}` | {} |\n", escape(&row.row), escape(&row.id), cells.join(" | ")));
    }
    text.push_str("\nThe rows:\n\n");
    for row in &table.rows {
        let references: Vec<String> = row.reference.iter().map(|reference| escape(reference)).collect();
        text.push_str(&format!("- `{}` ({}): {} {}\n", row.id, row.row, escape(&row.question), references.join(", ")));
    }
    text.push_str("\nThe clocks of the clients:\n\n");
    for column in distinct(table) {
        text.push_str(&format!("- {}: {}\n", escape(&column.client), escape(&column.clocks)));
    }
    text
}

fn introduction(table: &Table) -> String {
    format!(
        "Measured on {} with Longhaul {}, one run a cell, mock control plane. `passed`: the fault was hit and every budget of \
         the scenario was kept. `not hit`: the client never sent a request that this fault concerns. Times count from the \
         fault's first hit: *asks* is the client's next request for the resource, *sees* the first version reported that was \
         committed afterwards.",
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
    // The whole output of a failed installation is no text for a cell.
    let text = cell.outcome.text();
    format!("{}{time}", text.lines().next().unwrap_or_default())
}

/// Outside text inside a Markdown table.
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

/// One column of each client: its clocks are the same in all.
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
}

struct Row<'a> {
    head: &'a RowHead,
    cells: Vec<Shown>,
}

struct Shown {
    class: &'static str,
    text: String,
    time: String,
    hover: String,
}

/// The table as a page that fetches nothing.
pub fn html(table: &Table) -> Result<String, askama::Error> {
    let shown = |row: &RowHead, column: &ColumnHead| match table.cell(&row.id, &column.id) {
        None => Shown { class: "none", text: NOTHING.to_owned(), time: String::new(), hover: String::new() },
        Some(cell) => Shown {
            class: class(&cell.outcome),
            text: cell.outcome.text().lines().next().unwrap_or_default().to_owned(),
            time: cell.time().unwrap_or_default(),
            hover: [cell.reason.as_str(), cell.command.as_str()].join("\n").trim().to_owned(),
        },
    };
    let row = |row| Row { head: row, cells: table.columns.iter().map(|column| shown(row, column)).collect() };
    Page { table, rows: table.rows.iter().map(row).collect(), clocks: distinct(table) }.render()
}

fn class(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed { .. } => "failed",
        Outcome::NotHit | Outcome::OtherHttp | Outcome::Skipped { .. } => "none",
        Outcome::Inconclusive => "open",
    }
}

#[cfg(test)]
mod tests;
