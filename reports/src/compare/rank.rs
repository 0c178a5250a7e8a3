//! Ranks: which subject is significantly better in a figure.
//!
//! A subject's rank in a figure is one more than the number of subjects whose whole interval lies below its own. If no
//! two intervals are apart, no subject has a rank: a table of numbers looks like an order even if there is none.

use super::{FIGURES, Fate, Row};
use crate::judge::Verdict;

/// Gives each row its rank in each figure that has an order.
pub(super) fn rank(rows: &mut [Row]) {
    for figure in FIGURES.iter().filter(|figure| figure.ranked) {
        let bounds: Vec<Option<Bounds>> = rows.iter().map(|row| bounds(row, figure.key)).collect();
        let better = |own: Bounds| bounds.iter().flatten().filter(|other| other.below(own)).count();
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

/// The interval of a figure.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    lower: f64,
    upper: f64,
    burst: f64,
}

impl Bounds {
    /// Whether this interval is entirely below the other. Losses of this subject may come in bursts as large as those
    /// of the other.
    fn below(self, other: Self) -> bool {
        self.upper / self.burst * self.burst.max(other.burst) < other.lower
    }
}

/// The intervals of a row that may be ranked: it ran to the end, and its run can be trusted.
fn bounds(row: &Row, key: &str) -> Option<Bounds> {
    if row.fate != Fate::Ran || row.verdict == Some(Verdict::Invalid) {
        return None;
    }
    let cell = row.figures.get(key)?;
    Some(Bounds { lower: cell.lower?, upper: cell.upper?, burst: cell.burst })
}
