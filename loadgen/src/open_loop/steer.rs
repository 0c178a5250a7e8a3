//! [`Steer`]: starts a plan's operations one by one while the subject keeps up, and later at a rate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use units::Rate;

/// How often the pacing thread checks for a permit.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Controls when the operations of a plan start, while the rate is found during the run.
///
/// Until the rate is fixed, each operation needs a permit to start. These permits change neither the operations nor
/// their order.
#[derive(Debug, Default)]
pub struct Steer {
    permit: AtomicBool,
    given: AtomicU64,
    settled: Mutex<Option<Settled>>,
}

/// The fixed rate, and the time from which it applies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Settled {
    at: Instant,
    /// The start of the fixed rate, counted from the start of the plan.
    since: Duration,
    /// The number of operations that began before the rate was fixed.
    after: u64,
    rate: Rate,
}

impl Steer {
    /// Permits one more operation. A second permit before the permitted operation starts has no effect.
    pub fn permit(&self) {
        self.permit.store(true, Ordering::Release);
    }

    /// Number of operations that have begun.
    pub fn given(&self) -> u64 {
        self.given.load(Ordering::Acquire)
    }

    /// Fixes the rate: from `at` on, which is `since` after the start of the plan, operations come evenly at this rate.
    pub fn settle(&self, at: Instant, since: Duration, rate: Rate) {
        let mut settled = self.settled.lock();
        *settled = Some(Settled { at, since, after: self.given(), rate });
    }

    /// Returns to the state before the first operation.
    pub(crate) fn reset(&self) {
        *self.settled.lock() = None;
        self.permit.store(false, Ordering::Release);
        self.given.store(0, Ordering::Release);
    }

    pub(crate) fn settled(&self) -> Option<Settled> {
        *self.settled.lock()
    }

    /// Begins the next operation if it is allowed, and returns its planned time, which is not after now.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let settled = self.settled.lock();
        let planned = match &*settled {
            Some(settled) => settled.time_of(self.given()).filter(|at| *at <= now)?,
            None => self.permit.swap(false, Ordering::AcqRel).then_some(now)?,
        };
        self.given.fetch_add(1, Ordering::AcqRel);
        Some(planned)
    }

    /// The time of the next check for a permit; `None` if no operation follows.
    pub(super) fn next_at(&self) -> Option<Instant> {
        match &*self.settled.lock() {
            Some(settled) => settled.time_of(self.given()),
            None if self.permit.load(Ordering::Acquire) => Some(Instant::now()),
            None => Some(Instant::now() + LOOK_AGAIN),
        }
    }
}

impl Settled {
    /// The planned time of an operation, counted from the start of the plan, by its number from 0. `None` for
    /// operations before the rate was fixed, and for a rate of zero.
    pub(crate) fn offset_of(&self, number: u64) -> Option<Duration> {
        Some(self.since + self.behind(number)?)
    }

    fn time_of(&self, number: u64) -> Option<Instant> {
        Some(self.at + self.behind(number)?)
    }

    fn behind(&self, number: u64) -> Option<Duration> {
        let place = number.checked_sub(self.after)? + 1;
        // A wait of a year is practically for ever, and can be added to any time.
        let seconds = (place as f64 / self.rate.as_per_second()).min(3.2e7);
        (self.rate.as_per_second() > 0.0).then(|| Duration::from_secs_f64(seconds))
    }
}

/// Two values are always equal, because plans are compared without the rates that they found.
impl PartialEq for Steer {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At first each permit starts one operation; later operations come evenly, and none is lost or early.
    #[test]
    fn permits_first_and_then_a_rate() {
        let (steer, now) = (Steer::default(), Instant::now());
        assert_eq!(steer.due(now), None);
        steer.permit();
        steer.permit();
        assert_eq!((steer.due(now), steer.due(now), steer.given()), (Some(now), None, 1));
        steer.settle(now, Duration::from_secs(9), Rate::per_second(10.0));
        let settled = steer.settled().unwrap();
        assert_eq!((settled.offset_of(0), settled.offset_of(1)), (None, Some(Duration::from_millis(9100))));
        let after = |ms| now + Duration::from_millis(ms);
        assert_eq!(steer.due(after(99)), None);
        assert_eq!(steer.due(after(250)), Some(after(100)));
        assert_eq!(steer.due(after(250)), Some(after(200)));
        assert_eq!((steer.due(after(250)), steer.next_at()), (None, Some(after(300))));
        steer.reset();
        assert_eq!((steer.given(), steer.settled(), steer.due(after(1000))), (0, None, None));
    }
}
