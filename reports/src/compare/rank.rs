//! Ranks of subjects: which subjects are significantly better in a figure.
//!
//! A subject's rank in a figure is one more than the number of subjects whose whole interval is below the subject's
//! interval. If all intervals overlap, no subject has a rank: numbered subjects would look like an order although there
//! is none.

use super::{FIGURES, Fate, Row};
use crate::judge::Verdict;

/// Sets the rank of each row for each figure that has ranks.
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

/// The interval of a figure of one subject.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    lower: f64,
    upper: f64,
    burst: f64,
}

impl Bounds {
    /// Whether this interval is entirely below `other`, even if an outage costs this subject as many versions as the
    /// other.
    fn below(self, other: Self) -> bool {
        self.upper / self.burst * self.burst.max(other.burst) < other.lower
    }
}

/// The interval of a subject that can be ranked: it ran to the end, and its run can be trusted.
fn bounds(row: &Row, key: &str) -> Option<Bounds> {
    if row.fate != Fate::Ran || row.verdict == Some(Verdict::Invalid) {
        return None;
    }
    let cell = row.figures.get(key)?;
    Some(Bounds { lower: cell.lower?, upper: cell.upper?, burst: cell.burst })
}
