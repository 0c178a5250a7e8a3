//! Finds change points: the samples at which the level of a series changes.

use super::{Error, check, quantile};

/// Maximum number of values to search. The search sorts each value into each segment to compute its cost.
pub const VALUES_MAX: usize = 256;

/// The change points that minimize the cost of all segments plus `penalty` for each change point. A change point is the
/// index of the first value of a new segment; the returned indexes rise.
///
/// The cost of a segment is the sum of absolute deviations from its median, so that single outliers are no change
/// points. The method is PELT (Killick, Fearnhead & Eckley, JASA 107, 2012) and exact. `penalty` has the unit of the
/// values, and no segment is shorter than `least`. The work is O(n³) at worst, with a cap on n.
pub fn pelt(values: &[f64], penalty: f64, least: usize) -> Result<Vec<usize>, Error> {
    check(values, 1, VALUES_MAX)?;
    if !(penalty >= 0.0 && penalty.is_finite()) {
        return Err(Error::OutOfRange { what: "the penalty", value: penalty });
    }
    let (n, least) = (values.len(), least.max(1));
    let costs = costs(values);
    // best[t]: the least cost of the first t values, counted so that the first segment carries no penalty.
    let mut best = vec![f64::INFINITY; n + 1];
    best[0] = -penalty;
    let mut previous = vec![0; n + 1];
    // Starts of the last segment, each with the first end for which it is known not to be best.
    let mut candidates = vec![(0, usize::MAX)];
    for end in least..=n {
        let total = |start: usize| best[start] + costs[start][end - start - 1] + penalty;
        candidates.retain(|(_, until)| end < *until);
        let fitting = candidates.iter().map(|(start, _)| *start).filter(|start| end - start >= least);
        if let Some(start) = fitting.min_by(|a, b| total(*a).total_cmp(&total(*b))) {
            let cost = total(start);
            // A start that loses by more than a penalty loses for ever to a segment that begins here, as soon as that
            // one is long enough.
            for (start, until) in &mut candidates {
                if end - *start >= least && total(*start) - penalty > cost {
                    *until = (*until).min(end + least);
                }
            }
            (best[end], previous[end]) = (cost, start);
        }
        // A segment may begin here if the values before it make one.
        if best[end].is_finite() {
            candidates.push((end, usize::MAX));
        }
    }
    let mut found = Vec::new();
    let mut end = n;
    while end > 0 && previous[end] > 0 {
        end = previous[end];
        found.push(end);
    }
    found.reverse();
    Ok(found)
}

pub fn deviation(values: &[f64]) -> f64 {
    let middle = quantile::median(values);
    values.iter().map(|value| (value - middle).abs()).sum()
}

/// For each start, the costs of the segments of length 1, 2, … that begin there.
fn costs(values: &[f64]) -> Vec<Vec<f64>> {
    let of_start = |start: usize| {
        let mut sorted: Vec<f64> = Vec::with_capacity(values.len() - start);
        let of_end = |value: &f64| {
            let at = sorted.partition_point(|other| other < value);
            sorted.insert(at, *value);
            let half = sorted.len() / 2;
            let upper: f64 = sorted[sorted.len() - half..].iter().sum();
            upper - sorted[..half].iter().sum::<f64>()
        };
        values[start..].iter().map(of_end).collect()
    };
    (0..values.len()).map(of_start).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The cost of a segmentation: the sum of its segments' costs, plus `penalty` for each change point.
    fn total(values: &[f64], changes: &[usize], penalty: f64) -> f64 {
        let bounds: Vec<usize> = [0].into_iter().chain(changes.iter().copied()).chain([values.len()]).collect();
        let segments: f64 = bounds.windows(2).map(|pair| deviation(&values[pair[0]..pair[1]])).sum();
        segments + penalty * changes.len() as f64
    }

    #[test]
    fn a_step_is_found_and_an_outlier_is_not() {
        let mut values = [vec![1.0; 10], vec![5.0; 10]].concat();
        assert_eq!(pelt(&values, 3.0, 2), Ok(vec![10]));
        values[4] = 100.0;
        assert_eq!(pelt(&values, 3.0, 2), Ok(vec![10]));
        assert_eq!(pelt(&[2.0; 20], 0.1, 1), Ok(vec![]));
        assert_eq!(pelt(&[1.0], 0.1, 2), Ok(vec![]));
    }

    #[test]
    fn what_cannot_be_computed_is_refused() {
        assert_eq!(pelt(&[], 1.0, 1), Err(Error::TooFew { found: 0, least: 1 }));
        assert_eq!(pelt(&[f64::NAN], 1.0, 1), Err(Error::NotFinite { index: 0 }));
        assert!(pelt(&[1.0], f64::NAN, 1).is_err() && pelt(&[1.0], -1.0, 1).is_err());
        assert!(pelt(&[0.0; VALUES_MAX + 1], 1.0, 1).is_err());
    }

    proptest! {
        /// No segmentation is cheaper than the result of [`pelt`]. The change points stay the same if a constant is
        /// added to all values, or if values and penalty are multiplied by a factor.
        #[test]
        fn it_is_the_best_of_all(values in prop::collection::vec(-10.0..10.0_f64, 1..11), penalty in 0.1..20.0_f64, least in 1_usize..4) {
            let found = pelt(&values, penalty, least).unwrap();
            let cost = total(&values, &found, penalty);
            for bits in 0..1_u32 << (values.len() - 1) {
                let changes: Vec<usize> = (1..values.len()).filter(|i| bits >> (i - 1) & 1 == 1).collect();
                let bounds: Vec<usize> = [0].into_iter().chain(changes.iter().copied()).chain([values.len()]).collect();
                if changes.is_empty() || bounds.windows(2).all(|pair| pair[1] - pair[0] >= least) {
                    prop_assert!(cost <= total(&values, &changes, penalty) + 1e-9, "{found:?} {changes:?}");
                }
            }
            let moved: Vec<f64> = values.iter().map(|value| 3.0 * value + 100.0).collect();
            let again = pelt(&moved, 3.0 * penalty, least).unwrap();
            prop_assert!((total(&moved, &again, 3.0 * penalty) - 3.0 * cost).abs() < 1e-6);
        }
    }
}
