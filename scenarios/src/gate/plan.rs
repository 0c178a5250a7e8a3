//! The expected time of a gate, and the number of blocks that fit into its time limit. Does no I/O.
//!
//! The estimate assumes a slow machine with two cores. The actual time is checked between blocks ([`Plan::has_room`]).

use std::time::Duration;

use anyhow::{Result, ensure};
use reports::gate::order::BLOCK;

use super::work::Work;

/// Minimum number of blocks; fewer blocks give too few pairs of measurements to decide.
pub(super) const BLOCKS_LEAST: u32 = 3;
/// Expected time to start both builds.
const START: Duration = Duration::from_secs(5);
/// Time of one measurement beyond its phases, for plans, threads and the last answers.
const ASIDE: Duration = Duration::from_millis(400);
/// Lowest expected rate at which objects are created or deleted, including the time until the subject has seen the last
/// object.
const FILLED_PER_SECOND: f64 = 1000.0;
const SEEN: Duration = Duration::from_millis(200);
/// Number of counting passes per session.
const PASSES: u32 = 6;
const SESSIONS: u32 = 2;

/// The times that a session spends on warm-up and counting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Besides {
    /// Time of full load, and time of churn, to warm up a build.
    pub(super) warm: [Duration; 2],
    pub(super) pass: Duration,
    /// Maximum time for callgrind; `None` if callgrind is not used.
    pub(super) callgrind: Option<Duration>,
}

/// The number of blocks and the times of a gate that fits its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) blocks: u32,
    pub(super) session: Duration,
    pub(super) share: Duration,
}

impl Plan {
    /// Plans the wanted number of blocks, or as many as fit into the time limit. If the user has set a number that does
    /// not fit, returns an error.
    pub(super) fn fit(work: &Work, besides: Besides, wanted: u32, named: bool, limit: Duration) -> Result<Self> {
        let share = limit / SESSIONS;
        let (once, block) = (once(work, besides), slice(work) * BLOCK);
        let room = share.saturating_sub(once).as_secs_f64() / block.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is not negative")]
        let fits = room as u32;
        let time = |length: Duration| reports::words::millis(crate::clock::millis(length));
        ensure!(
            fits >= BLOCKS_LEAST,
            "two sessions of {BLOCKS_LEAST} blocks take {}, more than {}: make `phases` of the scenario shorter, or allow more with --at-most",
            time((once + block * BLOCKS_LEAST) * SESSIONS),
            time(limit)
        );
        ensure!(
            !named || wanted <= fits,
            "--blocks {wanted}: two sessions would take {}, more than {}: at most {fits} fit, or allow more with --at-most",
            time((once + block * wanted) * SESSIONS),
            time(limit)
        );
        let blocks = wanted.min(fits);
        Ok(Self { blocks, session: once + block * blocks, share })
    }

    /// Whether another block fits into the session's time, judged by the time of earlier blocks.
    pub(super) fn has_room(&self, blocks: u32, elapsed: Duration) -> bool {
        elapsed + elapsed / blocks.max(1) <= self.share
    }

    /// Whether another pair of measurements fits into the session's time.
    pub(super) fn has_room_for_pair(&self, slices: usize, elapsed: Duration) -> bool {
        let slices = u32::try_from(slices).unwrap_or(u32::MAX).max(1);
        elapsed + elapsed / slices * 2 <= self.share
    }

    /// A sentence about the expected time of the gate.
    pub(super) fn describe(&self, wanted: u32) -> String {
        let time = |length: Duration| reports::words::millis(crate::clock::millis(length));
        let fewer = if self.blocks < wanted {
            format!("{} blocks instead of {wanted}, so that it ends in time; ", self.blocks)
        } else {
            String::new()
        };
        format!(
            "{fewer}about {}, and as long again if something looks worse; never more than {}",
            time(self.session),
            time(self.share * SESSIONS)
        )
    }
}

/// Time that a session spends on the start, warm-up and counting.
fn once(work: &Work, besides: Besides) -> Duration {
    let [filled, watches] = besides.warm;
    let reviews = work.reviews.as_ref().map_or(Duration::ZERO, |_| filled * 2 + besides.pass * PASSES);
    let events = work.churn.map_or(Duration::ZERO, |_| churn(work, watches) * 2 + churn(work, besides.pass) * PASSES);
    START + reviews + events + besides.callgrind.unwrap_or_default()
}

fn slice(work: &Work) -> Duration {
    let reviews =
        work.reviews.as_ref().map_or(Duration::ZERO, |_| work.times.settle + work.times.slice + work.times.rest);
    let events = work.churn.map_or(Duration::ZERO, |_| churn(work, work.events(0).length) + work.times.rest);
    reviews + events + ASIDE
}

/// Time of a churn, with creating and deleting its objects.
fn churn(work: &Work, length: Duration) -> Duration {
    let population = work.churn.map_or(0, |(population, _)| population);
    length + Duration::from_secs_f64(2.0 * population as f64 / FILLED_PER_SECOND) + SEEN
}

#[cfg(test)]
mod tests {
    use super::super::work::Times;
    use super::*;

    fn work(slice: u64, churn: Option<(u64, f64)>) -> Work {
        let seconds = Duration::from_secs;
        let reviews = serde_json::from_value(serde_json::json!({"rate": "600/s"})).unwrap();
        Work {
            reviews: Some(reviews),
            churn,
            times: Times { settle: seconds(3), slice: seconds(slice), rest: seconds(1) },
        }
    }

    const BESIDES: Besides =
        Besides { warm: [Duration::from_millis(1500); 2], pass: Duration::from_millis(1500), callgrind: None };
    const MINUTE: Duration = Duration::from_mins(1);

    /// Pairs of measurements are repeated while the session's time lasts.
    #[test]
    fn a_pair_is_played_again_where_there_is_room() {
        let plan = Plan { blocks: 3, session: MINUTE, share: 2 * MINUTE };
        assert!(plan.has_room_for_pair(12, MINUTE) && plan.has_room_for_pair(12, 100 * MINUTE / 60));
        assert!(!plan.has_room_for_pair(12, 110 * MINUTE / 60) && !plan.has_room_for_pair(0, MINUTE));
    }

    #[test]
    fn what_does_not_fit_is_shortened_or_refused() {
        let long = work(20, Some((50, 200.0)));
        let plan = Plan::fit(&long, BESIDES, 9, false, 40 * MINUTE).unwrap();
        assert!(plan.blocks == 9 && plan.session * 2 <= 40 * MINUTE, "{plan:?}");
        let plan = Plan::fit(&long, BESIDES, 40, false, 40 * MINUTE).unwrap();
        assert!(plan.blocks < 40 && plan.session * 2 <= 40 * MINUTE, "{plan:?}");
        assert!(
            plan.describe(40).starts_with(&format!("{} blocks instead of 40", plan.blocks)),
            "{}",
            plan.describe(40)
        );
        let error = Plan::fit(&long, BESIDES, 40, true, 40 * MINUTE).unwrap_err().to_string();
        assert!(error.starts_with("--blocks 40: two sessions would take ") && error.contains("--at-most"), "{error}");
        let error = Plan::fit(&long, BESIDES, 9, false, 5 * MINUTE).unwrap_err().to_string();
        assert!(error.starts_with("two sessions of 3 blocks take "), "{error}");
    }
}
