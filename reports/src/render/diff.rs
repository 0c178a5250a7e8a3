//! The comparison of two runs, as a text of three columns.
//!
//! Owns the layout of the comparison. A budget is listed if its verdicts differ, or if one of them is not a pass. All
//! figures are listed, with the ratio of the second run to the first.

use std::fmt::Write;

use super::table::columns;
use super::terminal::{plain, word};
use crate::diff::{BudgetPair, Diff, Difference, Figure, Unit};
use crate::words::{bytes, count, micros, three_digits};

/// The text in a table cell for a missing value.
const NOTHING: &str = "-";

/// The comparison of two runs as text that ends with a line end.
pub fn diff(diff: &Diff) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut text, diff);
    text
}

fn write(out: &mut String, diff: &Diff) -> std::fmt::Result {
    for (letter, side) in [("A", &diff.a), ("B", &diff.b)] {
        writeln!(out, "{letter}  {} {} ({})", word(side.verdict), plain(&side.run_id), plain(&side.started_at))?;
    }
    table(out, "budgets", diff.budgets.iter().filter(|pair| stands_out(pair)).map(budget));
    let same = diff.budgets.iter().filter(|pair| !stands_out(pair)).count();
    if same > 0 {
        writeln!(out, "   {same} more have the same verdict in both")?;
    }
    table(out, "figures", diff.figures.iter().map(figure));
    table(out, "what differs", diff.differences.iter().map(difference));
    if diff.differences.is_empty() {
        writeln!(out, "\nwhat differs\n   nothing: same scenario, machine, versions and program")?;
    }
    if diff.more {
        writeln!(out, "   and more")?;
    }
    writeln!(
        out,
        "\nThe runs were at different times, so other work of the machine can change every figure. This is a comparison, not a verdict."
    )
}

/// Whether a budget is listed: its verdicts differ, or one of them is not a pass.
fn stands_out(pair: &BudgetPair) -> bool {
    let verdict = |cell: &Option<crate::diff::Cell>| cell.as_ref().map(|cell| cell.verdict);
    verdict(&pair.a) != verdict(&pair.b)
        || verdict(&pair.a).is_some_and(|verdict| verdict != crate::judge::Verdict::Pass)
}

pub(super) fn budget(pair: &BudgetPair) -> [String; 4] {
    let cell = |cell: &Option<crate::diff::Cell>| {
        cell.as_ref().map_or_else(
            || NOTHING.to_owned(),
            |cell| format!("{} {} of {}", word(cell.verdict), plain(&cell.observed), plain(&cell.limit)),
        )
    };
    [plain(&pair.budget), cell(&pair.a), cell(&pair.b), String::new()]
}

pub(super) fn figure(figure: &Figure) -> [String; 4] {
    let told = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), |value| in_unit(value, figure.unit));
    let ratio = figure.ratio().map(|ratio| format!("x{}", three_digits(ratio))).unwrap_or_default();
    [figure.name.clone(), told(figure.a), told(figure.b), ratio]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures are not negative, and are rounded to be read"
)]
pub(super) fn in_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count if value.fract() == 0.0 => count(value as u64),
        Unit::Count => three_digits(value),
        Unit::Micros if value < 10.0 => format!("{} µs", three_digits(value)),
        Unit::Micros => micros(value.round() as u64),
        Unit::Bytes => bytes(value.round() as u64),
    }
}

pub(super) fn difference(difference: &Difference) -> [String; 4] {
    let told = |value: &Option<String>| value.as_deref().map_or_else(|| NOTHING.to_owned(), plain);
    [plain(&difference.path), told(&difference.a), told(&difference.b), String::new()]
}

fn table(out: &mut String, title: &str, rows: impl Iterator<Item = [String; 4]>) {
    let rows: Vec<_> = rows.map(|[name, a, b, ratio]| [format!("   {name}"), a, b, ratio]).collect();
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&columns([title, "A", "B", ""], &rows, &[]));
    }
}

#[cfg(test)]
mod tests {
    use crate::example::Example;

    #[test]
    fn a_worse_run_stands_beside_a_good_one() {
        let dir = tempfile::tempdir().unwrap();
        let open = |example: &Example, name: &str| {
            let dir = dir.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            example.open(&dir)
        };
        let (good, bad) = (open(&Example::clean(), "a"), open(&Example::failing(), "b"));
        let (one, other) = (crate::judge::judge(&good), crate::judge::judge(&bad));
        insta::assert_snapshot!(super::diff(&crate::diff::diff((&good, &one), (&bad, &other))));
    }
}
