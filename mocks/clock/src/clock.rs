//! A clock that goes faster: what the kernel's times mean to the program, and back.
//!
//! Pure but for the start. Each of the kernel's clocks keeps its reading at the start; from there on it goes at the rate.

use crate::forms::SECOND;
use crate::sys;

/// The kernel's clocks have numbers up to this one; those above it are devices' and processes'.
pub const CLOCKS: usize = 12;
/// `CLOCK_REALTIME`, which also `gettimeofday`, `time` and absolute limits of `futex` and `mq_timedsend` mean.
pub const REALTIME: i32 = libc::CLOCK_REALTIME;

/// The clock of a tree of programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    rate: u32,
    /// By the kernel's number, in nanoseconds; 0 for a clock that stays as it is (of processors, and what the kernel does not know).
    bases: [i64; CLOCKS],
}

impl Clock {
    /// A clock that goes `rate` times as fast from an instant of the monotonic clock on: it may be long ago, when another program began.
    pub fn starting(rate: u32, since_ns: i64) -> Self {
        let mut bases = [0; CLOCKS];
        let ago = crate::now() - since_ns;
        let mut set =
            |ids: &[i32], base: i64| ids.iter().for_each(|id| bases[usize::try_from(*id).unwrap_or(0)] = base);
        let now = |id| sys::reading(id).map_or(0, |[seconds, nanos]| (seconds * SECOND + nanos - ago).max(1));
        let real = now(libc::CLOCK_REALTIME);
        set(&[libc::CLOCK_REALTIME, libc::CLOCK_REALTIME_COARSE, libc::CLOCK_REALTIME_ALARM], real);
        set(&[libc::CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC_COARSE], now(libc::CLOCK_MONOTONIC));
        set(&[libc::CLOCK_MONOTONIC_RAW], now(libc::CLOCK_MONOTONIC_RAW));
        set(&[libc::CLOCK_BOOTTIME, libc::CLOCK_BOOTTIME_ALARM], now(libc::CLOCK_BOOTTIME));
        // Ahead of real time by whole seconds, which are not to be multiplied.
        set(&[libc::CLOCK_TAI], now(libc::CLOCK_TAI));
        Self { rate, bases }
    }

    /// A clock with bases of a test.
    #[cfg(test)]
    pub(crate) fn of_test(rate: u32, base: i64) -> Self {
        let mut bases = [base; CLOCKS];
        bases[2] = 0;
        bases[3] = 0;
        bases[10] = 0;
        Self { rate, bases }
    }

    /// How many times as fast.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// The readings at the start, as the page needs them.
    pub fn bases(&self) -> &[i64; CLOCKS] {
        &self.bases
    }

    /// The reading of a clock at the start; `None` for a clock that stays as it is.
    pub fn base(&self, id: i32) -> Option<i128> {
        let base = *self.bases.get(usize::try_from(id).ok()?)?;
        (base != 0).then_some(i128::from(base))
    }

    /// The clock's numbers whose time is the program's own.
    pub fn own_ids(&self) -> impl Iterator<Item = i32> {
        (0..).zip(&self.bases).filter(|(_, base)| **base != 0).map(|(id, _)| id)
    }

    /// A length of the program's time, in real time; rounded up, so that no wait ends early.
    pub fn shorter(&self, own_ns: i128) -> i128 {
        div_up(own_ns, i128::from(self.rate))
    }

    /// A length of real time, in the program's.
    pub fn longer(&self, real_ns: i128) -> i128 {
        real_ns.saturating_mul(i128::from(self.rate))
    }

    /// An instant of the program's time, in the kernel's; rounded up.
    pub fn real(&self, base: i128, own_ns: i128) -> i128 {
        base + self.shorter(own_ns - base)
    }

    /// An instant of the kernel's time, in the program's.
    pub fn own(&self, base: i128, real_ns: i128) -> i128 {
        base + self.longer(real_ns - base)
    }

    /// A period that was shortened, as long as the program said it: what division lost is at most `rate` nanoseconds, and periods are whole
    /// microseconds.
    pub fn period(&self, real_ns: i128) -> i128 {
        let long = self.longer(real_ns);
        let whole = long - long.rem_euclid(1000);
        if long - whole < i128::from(self.rate) { whole } else { long }
    }
}

fn div_up(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A wait never ends before its time, and at most a nanosecond of real time after it.
        #[test]
        fn no_wait_is_shortened_too_far(rate in 1_u32..1000, own in 0_i64..i64::MAX) {
            let clock = Clock::of_test(rate, 1);
            let back = clock.longer(clock.shorter(i128::from(own)));
            prop_assert!(back >= i128::from(own) && back < i128::from(own) + i128::from(rate));
        }

        /// An instant that is waited for is reached when the clock shows it.
        #[test]
        fn an_instant_is_reached_when_the_clock_shows_it(rate in 1_u32..1000, base in 1_i64..1 << 60, own in 0_i64..1 << 62) {
            let clock = Clock::of_test(rate, base);
            let base = i128::from(base);
            let real = clock.real(base, i128::from(own));
            prop_assert!(clock.own(base, real) >= i128::from(own));
            prop_assert!(clock.own(base, real - 1) < i128::from(own));
            // The kernel refuses instants before its epoch.
            prop_assert!(real >= 0);
        }

        /// A later reading is never smaller, and the first is the kernel's own.
        #[test]
        fn time_does_not_go_back(rate in 1_u32..1000, first in 1_i64..1 << 60, step in 0_i64..1 << 40) {
            let clock = Clock::of_test(rate, 1 << 50);
            let own = |real: i64| clock.own(1 << 50, i128::from(real));
            prop_assert!(own(first + step) >= own(first));
            prop_assert_eq!(own(1 << 50), 1 << 50);
        }

        /// A period is told back as it was said.
        #[test]
        fn periods_come_back(rate in 1_u32..1000, micros in 1_i64..1 << 40) {
            let clock = Clock::of_test(rate, 1);
            let said = i128::from(micros) * 1000;
            prop_assert_eq!(clock.period(clock.shorter(said)), said);
        }
    }

    #[test]
    fn clocks_of_processors_stay() {
        let clock = Clock::starting(30, crate::now());
        for id in [libc::CLOCK_PROCESS_CPUTIME_ID, libc::CLOCK_THREAD_CPUTIME_ID, 10, 12, 16, -6, i32::MIN] {
            assert_eq!(clock.base(id), None, "{id}");
        }
        assert_eq!(clock.own_ids().collect::<Vec<_>>(), [0, 1, 4, 5, 6, 7, 8, 9, 11]);
    }
}
