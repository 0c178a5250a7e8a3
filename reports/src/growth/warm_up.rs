//! Finds the end of a series' warm-up: blocks at the start that lie off the line through later blocks are cut.

use crate::statistics::blocks::Blocks;
use crate::statistics::{quantile, theil_sen};

/// A block is cut only if it is this far from the line through the later blocks, in scatters of a block.
const OFF_LEAST: f64 = 4.0;
/// The time that is cut at the start of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WarmUp {
    /// Nothing is cut.
    None,
    /// Everything before this time is cut.
    Until {
        /// The start of the first block that was kept, in seconds of the series.
        t_s: f64,
    },
    /// Half of the series would have to be cut: the series was never steady.
    Never,
}

/// Finds the end of a series' warm-up. A block at the start is cut if it is at least `matters` below the line through
/// all later blocks. A block at the start is also cut if it is at least `matters` above both this line and the later
/// level. A first block below a line that bends upwards belongs to an accelerating leak and is kept.
pub(super) fn find(blocks: &Blocks, matters: f64) -> WarmUp {
    let (axis, values): (Vec<f64>, Vec<f64>) = blocks.blocks.iter().map(|block| (block.axis, block.value)).unzip();
    let half = values.len() / 2;
    let steady = (0..half).find(|first| !lies_off((&axis[*first..], &values[*first..]), matters));
    match steady {
        None => WarmUp::Never,
        Some(0) => WarmUp::None,
        Some(first) => WarmUp::Until { t_s: blocks.blocks[first].t_s - blocks.length_s / 2.0 },
    }
}

/// Whether the first point lies off the line through the other points.
fn lies_off((axis, values): (&[f64], &[f64]), matters: f64) -> bool {
    let (Some((x, later_axis)), Some((y, later))) = (axis.split_first(), values.split_first()) else { return false };
    let Ok(line) = theil_sen::slope(later_axis, later, super::CONFIDENCE, 1.0) else { return false };
    let level = theil_sen::intercept(later_axis, later, line.estimate);
    let left: Vec<f64> = later_axis.iter().zip(later).map(|(x, y)| y - level - line.estimate * x).collect();
    let middle = later_axis.iter().sum::<f64>() / later_axis.len() as f64;
    let spread: f64 = later_axis.iter().map(|x| (x - middle).powi(2)).sum();
    // The error of a line grows beyond its points.
    let beyond = (1.0 + 1.0 / later.len() as f64 + (x - middle).powi(2) / spread).sqrt();
    let off = y - level - line.estimate * x;
    off.abs() > (OFF_LEAST * quantile::scale(&left) * beyond).max(matters)
        && (off < 0.0 || *y > quantile::median(later))
}
