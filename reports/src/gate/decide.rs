//! The decision on one metric in one session, from its pairs, by a pure function.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::{hodges_lehmann, wilcoxon};

pub const CONFIDENCE: f64 = 0.95;

/// The decision about B compared with A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Word {
    /// The metric of B is lower than that of A, significantly and by more than the limit.
    Better,
    /// B differs from A by less than the limit in both directions, significantly.
    Same,
    /// The pairs prove none of the other decisions.
    CannotSay,
    /// The metric of B is higher than that of A, significantly and by more than the limit.
    Worse,
}

impl Word {
    pub fn text(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Same => "same",
            Self::CannotSay => "cannot say",
            Self::Worse => "worse",
        }
    }
}

/// The decision on the pairs of a metric. All numbers are on the scale on which the metric is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The Hodges–Lehmann estimate of the difference of B from A.
    pub estimate: f64,
    /// The lower bound of the difference; none if there are too few pairs.
    pub lower: Option<f64>,
    /// The upper bound of the difference; none if there are too few pairs.
    pub upper: Option<f64>,
    pub word: Word,
}

pub fn decide(pairs: &[f64], limit: f64) -> Option<Decision> {
    let estimate = hodges_lehmann::estimate(pairs).ok()?;
    let bounds = wilcoxon::bounds(pairs, CONFIDENCE).ok()?;
    let (lower, upper) = (bounds.lower, bounds.upper);
    let word = match (lower, upper) {
        (Some(lower), _) if lower > 0.0 && estimate > limit => Word::Worse,
        (_, Some(upper)) if upper < 0.0 && estimate < -limit => Word::Better,
        (Some(lower), Some(upper)) if -limit < lower && upper < limit => Word::Same,
        _ => Word::CannotSay,
    };
    Some(Decision { estimate, lower, upper, word })
}

/// The smallest shift of all pairs at which B is called worse; none if there are too few pairs. The returned shift is
/// exact, because both the estimate and the bound move with the pairs.
pub fn needed(pairs: &[f64], limit: f64) -> Option<f64> {
    let decision = decide(pairs, limit)?;
    Some((-decision.lower?).max(limit - decision.estimate))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_word_has_its_case() {
        let word = |pairs: &[f64]| decide(pairs, 0.05).unwrap().word;
        let around = |middle: f64| [-0.01, -0.005, 0.0, 0.002, 0.004, 0.01].map(|noise| middle + noise);
        assert_eq!(word(&around(0.1)), Word::Worse);
        assert_eq!(word(&around(-0.1)), Word::Better);
        assert_eq!(word(&around(0.0)), Word::Same);
        assert_eq!(word(&around(0.02)), Word::Same, "sure, and too little to matter");
        assert_eq!(word(&around(0.049)), Word::CannotSay);
        assert_eq!(word(&[0.1, 0.1, 0.1, 0.1]), Word::CannotSay, "four pairs are sure of nothing");
        assert_eq!(word(&[-0.2, 0.5, 0.3, -0.1, 0.4, 0.2]), Word::CannotSay, "large, and not sure");
        assert_eq!(decide(&[], 0.05), None);
    }

    proptest! {
        /// Pairs that are shifted by a little more than [`needed`] make B worse, and pairs that are shifted by a little
        /// less do not.
        #[test]
        fn what_is_needed_is_exact(pairs in prop::collection::vec(-0.3..0.3_f64, 6..20), limit in 0.0..0.1_f64) {
            let needed = needed(&pairs, limit).unwrap();
            let moved = |by: f64| decide(&pairs.iter().map(|pair| pair + by).collect::<Vec<_>>(), limit).unwrap().word;
            prop_assert_eq!(moved(needed + 1e-9), Word::Worse);
            prop_assert_ne!(moved(needed - 1e-9), Word::Worse);
        }

        /// Pairs with opposite signs lead to the opposite decision about B.
        #[test]
        fn the_two_builds_are_treated_alike(pairs in prop::collection::vec(-0.3..0.3_f64, 5..20), limit in 0.001..0.1_f64) {
            let turned: Vec<f64> = pairs.iter().map(|pair| -pair).collect();
            let turn = |word| match word {
                Word::Better => Word::Worse,
                Word::Worse => Word::Better,
                other => other,
            };
            prop_assert_eq!(decide(&turned, limit).unwrap().word, turn(decide(&pairs, limit).unwrap().word));
        }
    }
}
