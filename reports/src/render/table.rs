//! Tables as text in columns for a terminal, and as Markdown.

use std::fmt::Write;

/// The largest width of a column, in characters. A longer text makes its own line longer, but not the column.
const WIDEST: usize = 39;

/// A table with a head in which each row ends with a line end. The columns with the indexes in `right` are aligned
/// right.
pub(crate) fn columns<const N: usize>(head: [&str; N], rows: &[[String; N]], right: &[usize]) -> String {
    let head = head.map(str::to_owned);
    let lines = || std::iter::once(&head).chain(rows);
    let width = |column: usize| lines().map(|row| row[column].chars().count()).filter(|width| *width <= WIDEST).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(WIDEST));
    let mut text = String::new();
    for row in lines() {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if right.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// A table with a head, as Markdown. Cells must be escaped already.
pub(crate) fn markdown<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let head = head.map(|cell| if cell.is_empty() { " ".to_owned() } else { format!(" {cell} ") });
    let mut text = format!("|{}|\n|{}\n", head.join("|"), "---|".repeat(N));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}
