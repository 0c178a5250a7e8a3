//! Ranks: who is surely better in a figure.
//!
//! A subject's rank in a figure is one more than there are subjects whose whole interval lies below its own. Where no two intervals are apart
//! nobody has a rank: a table of numbers looks like an order even where there is none.

use super::{FIGURES, Fate, Row};
use crate::judge::Verdict;

/// Gives each row its rank in each figure that has an order.
pub(super) fn rank(rows: &mut [Row]) {
    for figure in FIGURES.iter().filter(|figure| figure.ranked) {
        let bounds: Vec<Option<(f64, f64)>> = rows.iter().map(|row| interval(row, figure.key)).collect();
        let better = |own: (f64, f64)| bounds.iter().flatten().filter(|other| other.1 < own.0).count();
        let ranks: Vec<Option<usize>> = bounds.iter().map(|own| own.map(|own| better(own) + 1)).collect();
        if ranks.iter().flatten().all(|rank| *rank == 1) {
            continue;
        }
        for (row, rank) in rows.iter_mut().zip(ranks) {
            if let Some(cell) = row.figures.get_mut(figure.key) {
                cell.rank = rank;
            }
        }
    }
}

/// The interval of a row that may be ranked: it ran to the end, and its run can be trusted.
fn interval(row: &Row, key: &str) -> Option<(f64, f64)> {
    if row.fate != Fate::Ran || row.verdict == Some(Verdict::Invalid) {
        return None;
    }
    let cell = row.figures.get(key)?;
    Some((cell.lower?, cell.upper?))
}
