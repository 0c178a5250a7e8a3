//! The order in which both builds get load, which a pure function draws from the seed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of measurements in a block: two of each build, so that a steady drift affects both builds alike.
pub const BLOCK: u32 = 4;

/// One of the two builds that a gate compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Side {
    /// The baseline build.
    A,
    /// The candidate build, which may be worse.
    B,
}

impl Side {
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    pub fn letter(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// The build that gets the load in each measurement of a session: ABBA or BAAB in each block.
pub fn order(seed: u64, session: u32, blocks: u32) -> Vec<Side> {
    let mut draw = Draw::new(seed ^ (u64::from(session) << 32));
    let block = |_| {
        let first = if draw.coin() { Side::A } else { Side::B };
        [first, first.other(), first.other(), first]
    };
    (0..blocks).flat_map(block).collect()
}

/// A stream of pseudo-random numbers from a seed (`SplitMix64`; Steele, Lea and Flood, 2014), not for cryptography.
#[derive(Debug, Clone)]
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn coin(&mut self) -> bool {
        self.number() >> 63 == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every block of a session has each build twice, in mirrored order. The same seed always gives the same order
        /// of builds.
        #[test]
        fn every_block_is_mirrored(seed in any::<u64>(), session in 0..3_u32, blocks in 0..40_u32) {
            let sides = order(seed, session, blocks);
            prop_assert_eq!(sides.len(), (blocks * BLOCK) as usize);
            for block in sides.chunks(BLOCK as usize) {
                prop_assert!(block[0] == block[3] && block[1] == block[2] && block[0] == block[1].other());
            }
            prop_assert_eq!(&sides, &order(seed, session, blocks));
        }
    }

    /// Both orders, ABBA and BAAB, are drawn, so neither build is always the first.
    #[test]
    fn both_orders_are_drawn() {
        let firsts: Vec<Side> = order(7, 1, 100).chunks(BLOCK as usize).map(|block| block[0]).collect();
        let a = firsts.iter().filter(|side| **side == Side::A).count();
        assert!((30..=70).contains(&a), "{a}");
        assert_ne!(order(7, 1, 20), order(7, 2, 20), "a second session has an order of its own");
    }
}
