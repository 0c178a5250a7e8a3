//! Finds a sudden step in a series: a level that changes at once.

use crate::statistics::blocks::{Blocks, Series};
use crate::statistics::{change_point, quantile, theil_sen};

/// The penalty for assuming a change of level, in scatters of a block times the logarithm of the number of blocks. The
/// factor is three, as in Schwarz's criterion for position, size and direction of a change.
const PENALTY: f64 = 3.0;
/// Minimum number of blocks before and after a sudden step; two blocks may be an outlier and its neighbour.
const BLOCKS_LEAST: usize = 3;
/// An edge (a sudden change) is searched between samples that are this many samples apart. A sudden step may fall
/// between two samples, or take a second or two.
const EDGE_LAGS: [usize; 3] = [1, 2, 4];
/// Minimum change at an edge, in multiples of the usual change between samples.
const EDGE_LEAST: f64 = 5.0;
/// The fraction of an edge that must remain after it, and the fraction of the whole step that must be in the edge. If a
/// smaller fraction remains, the edge belongs to a spike or to a slope.
const EDGE_SHARE: f64 = 0.4;
/// The samples of this many blocks before and after an edge give the two levels.
const LEVEL_BLOCKS: f64 = 2.0;
/// Maximum number of edges (sudden changes) that are examined, the largest first. Each examined edge costs the medians
/// of two blocks of samples, and a series that hardly ever changes has as many edges as changes.
const EDGES_MAX: usize = 64;
/// Two levels fit a series clearly better than a straight line if they leave at most this fraction of the line's
/// misfit.
const FIT: f64 = 0.7;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The time of the step (sudden change of level), in seconds of the series.
    pub t_s: f64,
    /// The size of the sudden step, in the unit of the values.
    pub by: f64,
    /// The number of the first block with the new level.
    pub(super) block: usize,
}

/// The only sudden step of a series that changes the level by at least `matters`; none if there are none or several.
/// Several sudden steps are growth.
pub(super) fn step(series: &Series<'_>, blocks: &Blocks, saw_tooth: bool, matters: f64) -> Option<Step> {
    let found = if saw_tooth { between_teeth(blocks) } else { edges(series, blocks) };
    match found.iter().filter(|step| step.by.abs() >= matters).collect::<Vec<_>>().as_slice() {
        [step] => Some(**step),
        _ => None,
    }
}

/// Points of the series at which the samples change at once by much more than usual, and stay at the new level. A
/// straight line has no edge, however steep it is.
fn edges(series: &Series<'_>, blocks: &Blocks) -> Vec<Step> {
    let (t_s, values) = (series.t_s, series.value);
    let distances: Vec<f64> = t_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let usual_s = quantile::median(&distances);
    let mut sharp: Vec<(usize, f64)> = Vec::new();
    for lag in EDGE_LAGS {
        let changes: Vec<f64> =
            values.iter().zip(values.get(lag..).unwrap_or_default()).map(|(before, after)| after - before).collect();
        let least = (EDGE_LEAST * quantile::scale(&changes)).max(f64::MIN_POSITIVE);
        // Whether a change across a gap was sudden is unknown.
        let close = |at: usize| t_s[at + lag] - t_s[at] <= 1.5 * lag as f64 * usual_s;
        let edges = changes.iter().enumerate().filter(|(at, by)| by.abs() >= least && close(*at));
        // The moment is the sample after the largest change of the edge.
        let change = |at: &usize| (values[*at] - values[at - 1]).abs();
        let moment = |at: usize| (at + 1..=at + lag).max_by(|a, b| change(a).total_cmp(&change(b))).unwrap_or(at + lag);
        sharp.extend(edges.map(|(at, by)| (moment(at), *by)));
    }
    // The largest first; another edge within a block of it is the same change.
    sharp.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    let mut steps: Vec<Step> = Vec::new();
    for (at, edge) in sharp.into_iter().take(EDGES_MAX) {
        let moment = t_s[at];
        if steps.iter().any(|step| (step.t_s - moment).abs() < blocks.length_s) {
            continue;
        }
        let around_s = LEVEL_BLOCKS * blocks.length_s;
        let first = t_s.partition_point(|t| *t < moment - around_s);
        let last = t_s.partition_point(|t| *t < moment + around_s);
        let by = quantile::median(&values[at..last]) - quantile::median(&values[first..at]);
        let block = blocks.blocks.partition_point(|block| block.t_s < moment);
        let inside = block >= BLOCKS_LEAST && block + BLOCKS_LEAST <= blocks.blocks.len();
        if inside && by / edge >= EDGE_SHARE && edge / by >= EDGE_SHARE {
            steps.push(Step { t_s: moment, by, block });
        }
    }
    steps
}

/// Finds a step (sudden change of level) in a series with a saw-tooth shape, where every fall is an edge. The step is a
/// change point of the blocks whose two levels fit clearly better than a straight line.
fn between_teeth(blocks: &Blocks) -> Vec<Step> {
    let (axis, values): (Vec<f64>, Vec<f64>) = blocks.blocks.iter().map(|block| (block.axis, block.value)).unzip();
    let changes: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let scatter = quantile::scale(&changes) / std::f64::consts::SQRT_2;
    let penalty = PENALTY * scatter * (values.len() as f64).ln();
    let found = change_point::pelt(&values, penalty, BLOCKS_LEAST).unwrap_or_default();
    let fitting = found.iter().filter(|block| fits_better(&axis, &values, **block));
    let of = |block: &usize| Step {
        t_s: blocks.blocks[*block].t_s - blocks.length_s / 2.0,
        by: quantile::median(&values[*block..]) - quantile::median(&values[..*block]),
        block: *block,
    };
    fitting.map(of).collect()
}

/// Whether two levels fit the blocks clearly better than a straight line.
fn fits_better(axis: &[f64], values: &[f64], block: usize) -> bool {
    let Ok(line) = theil_sen::slope(axis, values, super::CONFIDENCE, 1.0) else { return false };
    let left: Vec<f64> = axis.iter().zip(values).map(|(x, y)| y - line.estimate * x).collect();
    let levels = change_point::deviation(&values[..block]) + change_point::deviation(&values[block..]);
    levels < FIT * change_point::deviation(&left)
}
