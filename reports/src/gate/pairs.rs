//! Pairs of neighbouring measurements: B compared with A and, for the certificate, each build with itself.

use std::collections::BTreeMap;

use super::metric::Metric;
use super::order::Side;
use super::slice::Slice;

/// The pairs of a metric, on the scale of [`super::metric::Rule::against`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs {
    /// B compared with A, one value for each pair: the first or last two measurements of a block.
    pub between: Vec<f64>,
    /// A compared with A and B with B: the later measurement of each build in a block with its earlier one.
    pub within: Vec<f64>,
    pub a: Vec<f64>,
    pub b: Vec<f64>,
}

/// The pairs of a metric in one session, without dropped measurements. The first two measurements of a block are one
/// pair, and the last two measurements are another.
pub fn pairs(slices: &[Slice], dropped: &[Option<String>], session: u32, metric: Metric) -> Pairs {
    let mut blocks: BTreeMap<u32, [Option<(Side, f64)>; 4]> = BTreeMap::new();
    for (slice, why) in slices.iter().zip(dropped) {
        let value = slice.values.get(&metric).copied().filter(|value| value.is_finite());
        if let (true, None, Some(value), Ok(place @ 0..4)) =
            (slice.session == session, why, value, usize::try_from(slice.place))
        {
            blocks.entry(slice.block).or_default()[place] = Some((slice.side, value));
        }
    }
    let rule = metric.rule();
    let mut pairs = Pairs::default();
    for block in blocks.values() {
        for half in [[block[0], block[1]], [block[2], block[3]]] {
            let of = |side: Side| half.iter().flatten().find(|(one, _)| *one == side).map(|(_, value)| *value);
            if let (Some(a), Some(b)) = (of(Side::A), of(Side::B))
                && let Some(compared) = rule.against(a, b)
            {
                pairs.between.push(compared);
                pairs.a.push(a);
                pairs.b.push(b);
            }
        }
        for [early, late] in [[block[0], block[3]], [block[1], block[2]]] {
            if let (Some((one, early)), Some((other, late))) = (early, late)
                && one == other
            {
                pairs.within.extend(rule.against(early, late));
            }
        }
    }
    pairs
}

/// The median of `values`; zero if there are no values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}
