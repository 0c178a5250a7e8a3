//! Counts of intervals drawn as horizontal steps, so that no effect of a fault is drawn before the fault.
//!
//! If a fault begins within an interval, the interval's count also contains events before the fault. The step of that
//! interval therefore begins with the fault, and the time from the interval's start to the fault is left blank.

use super::super::chart::Step;
use super::faults::Played;
use super::{BAND_PARTS, POINTS};

/// Maximum number of faults whose starts all cut steps. If a run has more faults, only faults that begin while no other
/// fault is active cut steps; otherwise steps would become dots.
const CUTS_MOST: usize = 40;

/// The times at which steps are cut, and the rule by which steps are reduced.
#[derive(Debug)]
pub(in crate::render::html) struct Cuts {
    /// The starts of faults, in milliseconds, in ascending order.
    starts_ms: Vec<u64>,
    length_ms: u64,
}

impl Cuts {
    /// Computes the cuts for a run with these faults.
    pub(super) fn new(played: &[Played<'_>], length_ms: u64) -> Self {
        let mut spans: Vec<(u64, u64)> = played.iter().map(|fault| (fault.from_ms, fault.to_ms)).collect();
        spans.sort_unstable();
        if spans.len() > CUTS_MOST {
            let near_ms = length_ms / BAND_PARTS;
            let mut reached: Option<u64> = None;
            spans.retain(|(from_ms, to_ms)| {
                let alone = reached.is_none_or(|reached| *from_ms > reached.saturating_add(near_ms));
                reached = Some(reached.unwrap_or(0).max(*to_ms));
                alone
            });
        }
        Self { starts_ms: spans.into_iter().map(|(from_ms, _)| from_ms).collect(), length_ms }
    }

    /// The start of the drawn step for a count from `start_ms` to `end_ms`: the interval's start, or the last fault
    /// that began in the interval. A step is not cut if the time cut off would be too short to be visible.
    pub(super) fn drawn_from_ms(&self, start_ms: u64, end_ms: u64) -> u64 {
        let next = self.starts_ms.partition_point(|fault_ms| *fault_ms < end_ms);
        let last = next.checked_sub(1).and_then(|last| self.starts_ms.get(last)).copied().unwrap_or(0);
        if last > start_ms.saturating_add(self.length_ms / BAND_PARTS) { last } else { start_ms }
    }

    /// Reduces sorted time ranges (start, end, value) to at most about [`POINTS`] steps. Each step has the largest
    /// value of its range of the axis, because limits are about peaks.
    pub(super) fn steps(&self, each: impl Iterator<Item = (u64, u64, f64)>) -> Vec<Step> {
        let width_ms = (self.length_ms / POINTS).max(1);
        // Each with its start, up to which the step before may continue.
        let mut thin: Vec<(u64, Step)> = Vec::new();
        for (start_ms, end_ms, value) in each.filter(|(start_ms, end_ms, _)| start_ms < end_ms) {
            let step = Step { from: self.drawn_from_ms(start_ms, end_ms), until: end_ms, value };
            match thin.last_mut() {
                Some((last_ms, last)) if *last_ms / width_ms == start_ms / width_ms => {
                    if value > last.value {
                        (*last_ms, *last) = (start_ms, step);
                    } else {
                        last.until = end_ms;
                    }
                }
                _ => thin.push((start_ms, step)),
            }
        }
        // Stretches left out between two steps are no pause.
        for next in 1..thin.len() {
            let start_ms = thin[next].0;
            let before = &mut thin[next - 1].1;
            if start_ms.saturating_sub(before.until) <= width_ms * 2 {
                before.until = before.until.max(start_ms);
            }
        }
        thin.into_iter().map(|(_, step)| step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(from_ms: u64, to_ms: u64) -> Played<'static> {
        Played { name: "watch-end", from_ms, to_ms, hits: 1 }
    }

    /// A step whose interval contains the start of a fault begins with the fault. All other steps begin with the start
    /// of their interval.
    #[test]
    fn a_step_does_not_begin_before_its_fault() {
        let cuts = Cuts::new(&[fault(63_000, 64_000), fault(64_000, 70_000)], 160_000);
        let each = (0..32_u64).map(|index| (index * 5000, index * 5000 + 5000, index as f64));
        let steps = cuts.steps(each);
        assert_eq!(steps.len(), 32);
        for (index, step) in (0..).zip(&steps) {
            let from = if index == 12 { 64_000 } else { index * 5000 };
            assert_eq!((step.from, step.until), (from, index * 5000 + 5000), "{step:?}");
        }
    }

    /// The curve of a run of a hundred hours has only a few hundred steps. No step begins before its interval, and the
    /// highest value is among the steps.
    #[test]
    fn long_runs_are_thinned() {
        let hour_ms = 3_600_000;
        let fault_ms = 50 * hour_ms + 1000;
        let cuts = Cuts::new(&[fault(fault_ms, fault_ms + 1000)], 100 * hour_ms);
        let rows = 100 * hour_ms / 5000;
        let high = fault_ms / 5000;
        let steps =
            cuts.steps((0..rows).map(|row| (row * 5000, row * 5000 + 5000, if row == high { 9.0 } else { 1.0 })));
        assert!(steps.len() as u64 <= POINTS + 1, "{}", steps.len());
        let highest = steps.iter().find(|step| step.value > 8.0).unwrap();
        assert!(highest.from >= high * 5000, "{highest:?}");
        assert!(steps.windows(2).all(|two| two[0].until <= two[1].from && two[0].from < two[0].until), "{steps:?}");
    }

    /// If there are very many faults, only the start of the first one cuts a step, so that steps do not become dots.
    #[test]
    fn many_faults_are_one() {
        let many: Vec<_> = (0..2000).map(|number| fault(7000 + number * 70, 7050 + number * 70)).collect();
        let cuts = Cuts::new(&many, 160_000);
        let steps = cuts.steps((0..32_u64).map(|index| (index * 5000, index * 5000 + 5000, 1.0)));
        let cut: Vec<u64> = steps.iter().map(|step| step.from).filter(|from| from % 5000 > 0).collect();
        assert_eq!(cut, [7000]);
    }

    /// Times without a count stay blank in the curve.
    #[test]
    fn a_pause_stays_one() {
        let cuts = Cuts::new(&[], 160_000);
        let steps = cuts.steps([(0, 5000, 1.0), (60_000, 65_000, 2.0)].into_iter());
        assert_eq!(steps[0], Step { from: 0, until: 5000, value: 1.0 });
    }
}
