//! `churn: {rate: auto}`: the warm-up measures the rate that the subject sustains, and the run continues at half of
//! this rate.
//!
//! Owns the control loop that sets the rate of writes. While few versions wait for the subject, the loop permits one
//! more write at a time, so that the subject is busy but not behind. The sustained rate is the subject's progress while
//! versions were waiting. Does no I/O except for the permits: the time and the number of waiting versions are
//! arguments.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loadgen::churn::Steer;
use units::Rate;

use crate::scenario::Scenario;

/// Maximum number of waiting versions at which another version is written, so that each worker of a small subject has
/// one version.
const WAITING_MAX: u64 = 4;
/// Maximum number of writes per second: one for each tick of the run (20 ms).
const MOST: f64 = 50.0;
/// The rate of the run as a share of the sustained rate.
const SHARE: f64 = 0.5;
/// The lowest rate of the run in writes per second, so that some writes happen.
const LEAST: f64 = 0.2;

#[derive(Debug)]
pub(super) struct Pacing {
    steers: Vec<Arc<Steer>>,
    /// The index of the churn section that writes next.
    turn: usize,
    /// Whether the witness cannot show the subject's progress.
    is_mute: bool,
    first: Option<Look>,
    last: Look,
    /// Time in which at least one version was waiting, in milliseconds.
    busy_ms: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Look {
    t_ms: u64,
    waiting: u64,
}

/// The rates that the warm-up has measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    /// Writes per second that the subject sustained.
    pub(super) sustained: Rate,
    /// The rate of the run, for all sections together.
    pub(super) rate: Rate,
    /// Number of churn sections that share the rate.
    sections: usize,
    is_mute: bool,
}

impl Pacing {
    /// A control loop before any measurement; `None` if the scenario sets all rates.
    pub(super) fn of(scenario: &Scenario) -> Option<Self> {
        let steers: Vec<_> = scenario.churn.iter().filter_map(|churn| churn.rate.steer().cloned()).collect();
        (!steers.is_empty()).then(|| Self::new(steers, scenario.subject.watches_nothing()))
    }

    fn new(steers: Vec<Arc<Steer>>, is_mute: bool) -> Self {
        Self { steers, turn: 0, is_mute, first: None, last: Look::default(), busy_ms: 0 }
    }

    /// Receives the number of waiting versions. Called every few milliseconds during the warm-up.
    pub(super) fn tick(&mut self, t_ms: u64, waiting: u64) {
        let now = Look { t_ms, waiting };
        if self.first.is_none() {
            (self.first, self.last) = (Some(now), now);
        }
        if self.last.waiting > 0 || waiting > 0 {
            self.busy_ms += t_ms.saturating_sub(self.last.t_ms);
        }
        self.last = now;
        if waiting >= WAITING_MAX && !self.is_mute {
            return;
        }
        self.turn = (self.turn + 1) % self.steers.len();
        self.steers[self.turn].permit();
    }

    /// Ends the warm-up and returns the fixed rate for the rest of the run.
    pub(super) fn settle(self, at: Instant) -> Found {
        let found = self.found();
        let each = Rate::per_second(found.rate.as_per_second() / self.steers.len() as f64);
        let since = Duration::from_millis(self.last.t_ms);
        self.steers.iter().for_each(|steer| steer.settle(at, since, each));
        found
    }

    fn found(&self) -> Found {
        let given: u64 = self.steers.iter().map(|steer| steer.given()).sum();
        let before = self.first.map_or(0, |first| first.waiting);
        let done = (given + before).saturating_sub(self.last.waiting);
        // A subject for which no version ever waited keeps up with any rate.
        let sustained = if self.is_mute || self.busy_ms == 0 {
            MOST
        } else {
            (done as f64 * 1000.0 / self.busy_ms as f64).min(MOST)
        };
        let rate = rounded((sustained * SHARE).max(LEAST));
        let (sustained, rate) = (Rate::per_second(sustained), Rate::per_second(rate));
        Found { sustained, rate, sections: self.steers.len(), is_mute: self.is_mute }
    }
}

/// The rate, rounded down to two digits, so that the user can write the exact rate into a scenario file.
fn rounded(rate: f64) -> f64 {
    let step = if rate >= 10.0 { 1.0 } else { 10.0 };
    if rate >= 1.0 { (rate * step + 1e-9).floor() / step } else { (rate * 100.0 + 1e-9).floor() / 100.0 }
}

impl Found {
    /// A note for the report about the rate.
    pub(super) fn note(&self) -> String {
        let (rate, sustained) = (self.rate.as_per_second(), self.sustained.as_per_second());
        let found = if self.is_mute {
            "the subject's rate cannot be measured".to_owned()
        } else if sustained > 0.0 {
            format!("the subject sustained {sustained:.1} changes a second in the warm-up")
        } else {
            "no change was observed in the warm-up".to_owned()
        };
        let again = match self.sections {
            0 | 1 => format!("`rate: {rate}/s`"),
            all => format!("`rate: {}/s` in each of {all} sections", (rate / all as f64 * 100.0).round() / 100.0),
        };
        format!("`churn.rate` is `auto`: {found}, and the run went on at {rate}/s; repeat it with {again}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a subject that handles one change after the other, each in `service_ms`; at the start, `begins_with`
    /// changes wait.
    fn play(service_ms: u64, begins_with: u64, warm_up_ms: u64) -> (Found, u64) {
        let steer = Arc::new(Steer::default());
        let mut pacing = Pacing::new(vec![Arc::clone(&steer)], false);
        let (mut waiting, mut served_ms, mut most, mut now) = (begins_with, 0, 0, Instant::now());
        for t_ms in (0..warm_up_ms).step_by(20) {
            now += Duration::from_millis(20);
            if waiting == 0 {
                served_ms = t_ms;
            }
            while waiting > 0 && served_ms + service_ms <= t_ms {
                waiting -= 1;
                served_ms += service_ms;
            }
            pacing.tick(t_ms, waiting);
            let before = steer.given();
            steer.due(now);
            waiting += steer.given() - before;
            most = most.max(waiting);
        }
        (pacing.settle(now), most)
    }

    #[test]
    fn what_a_subject_sustains_is_found_out_without_a_queue() {
        let (found, most) = play(100, 0, 10_000);
        assert!((9.0..=10.1).contains(&found.sustained.as_per_second()), "{found:?}");
        assert!((4.5..=5.0).contains(&found.rate.as_per_second()), "{found:?}");
        assert!(most <= WAITING_MAX, "{most}");
        // A subject that is limited to five requests a second and needs fifteen per object.
        let (found, _) = play(3000, 0, 30_000);
        assert!((0.2..0.4).contains(&found.sustained.as_per_second()), "{found:?}");
        assert_eq!(found.rate, Rate::per_second(LEAST));
        // The initial population is work as well.
        let (found, _) = play(200, 60, 10_000);
        assert!((4.8..=5.1).contains(&found.sustained.as_per_second()), "{found:?}");
        let (fast, _) = play(1, 0, 10_000);
        assert_eq!(fast.rate, Rate::per_second(25.0), "{fast:?}");
        assert_eq!(
            fast.note(),
            "`churn.rate` is `auto`: the subject sustained 50.0 changes a second in the warm-up, and the run went on at 25/s; repeat it with \
             `rate: 25/s`"
        );
    }

    #[test]
    fn sections_take_turns_and_share_the_rate() {
        let steers = [(); 2].map(|()| Arc::new(Steer::default()));
        let mut pacing = Pacing::new(steers.to_vec(), true);
        let now = Instant::now();
        (0..10).for_each(|at| {
            pacing.tick(at * 20, 100);
            for steer in &steers {
                steer.due(now);
            }
        });
        assert_eq!(steers.each_ref().map(|steer| steer.given()), [5, 5], "nobody tells what waits");
        let found = pacing.settle(now);
        assert_eq!(found.rate, Rate::per_second(25.0));
        let note = found.note();
        assert!(
            note.contains("the subject's rate cannot be measured")
                && note.ends_with("`rate: 12.5/s` in each of 2 sections"),
            "{note}"
        );
    }

    /// If no version is observed, the warm-up still ends, and no sustained rate is reported.
    #[test]
    fn where_nothing_is_observed_nothing_is_claimed() {
        let (found, most) = play(60_000, 30, 10_000);
        assert_eq!((found.rate, most), (Rate::per_second(LEAST), 30));
        assert!(found.note().contains("`auto`: no change was observed in the warm-up, and the run went on at 0.2/s"));
    }

    #[test]
    fn a_rate_has_two_digits() {
        for (rate, expected) in [(24.99, 24.0), (3.79, 3.7), (0.256, 0.25), (0.2, 0.2)] {
            assert!((rounded(rate) - expected).abs() < 1e-9, "{rate}");
        }
    }
}
