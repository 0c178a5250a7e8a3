//! A faster clock: converts the kernel's times to the program's times and back.
//!
//! Pure, except that [`Clock::starting`] reads the kernel's clocks. Each clock of the kernel has an origin: the
//! kernel's time and the program's time at one instant. After the origin the program's clock runs at the new speed,
//! before the origin at the former speed. [`crate::shift`] makes another [`Clock`] for a later change.

use crate::forms::SECOND;
use crate::sys;

/// Number of the kernel's clocks. Higher clock numbers are clocks of devices and processes.
pub const CLOCKS: usize = 12;
/// `CLOCK_REALTIME`, which also `gettimeofday`, `time` and the absolute limits of `futex` and `mq_timedsend` use.
pub const REALTIME: i32 = libc::CLOCK_REALTIME;
/// Number of fractional bits of a speed.
pub const SPEED_BITS: u32 = 32;
/// Number of 8-byte words of a clock in a program's memory: its speed, its origins, the program's times at the origins,
/// and the former speed.
pub const WORDS: usize = 2 + 2 * CLOCKS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    rate: u32,
    /// Nanoseconds of the program's time in one real nanosecond, with [`SPEED_BITS`] fractional bits.
    pub(crate) speed: u64,
    /// The speed before the origins, needed because a thread may read the kernel's time before the clock is changed and
    /// convert it afterwards.
    pub(crate) before: u64,
    /// The kernel's time at the origin, in nanoseconds, by clock number; 0 for a clock that is not converted (CPU-time
    /// clocks and unknown clocks).
    pub(crate) origins: [i64; CLOCKS],
    /// The program's time at the origin, in nanoseconds, by clock number.
    pub(crate) shown: [i64; CLOCKS],
}

impl Clock {
    /// A clock that runs `rate` times as fast since an instant of the monotonic clock. The instant may be in the past:
    /// the start of another program.
    pub fn starting(rate: u32, since_ns: i64) -> Self {
        let mut origins = [0; CLOCKS];
        let ago = crate::now() - since_ns;
        let mut set =
            |ids: &[i32], origin: i64| ids.iter().for_each(|id| origins[usize::try_from(*id).unwrap_or(0)] = origin);
        let now = |id| sys::reading(id).map_or(0, |[seconds, nanos]| (seconds * SECOND + nanos - ago).max(1));
        let real = now(libc::CLOCK_REALTIME);
        set(&[libc::CLOCK_REALTIME, libc::CLOCK_REALTIME_COARSE, libc::CLOCK_REALTIME_ALARM], real);
        set(&[libc::CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC_COARSE], now(libc::CLOCK_MONOTONIC));
        set(&[libc::CLOCK_MONOTONIC_RAW], now(libc::CLOCK_MONOTONIC_RAW));
        set(&[libc::CLOCK_BOOTTIME, libc::CLOCK_BOOTTIME_ALARM], now(libc::CLOCK_BOOTTIME));
        // Ahead of real time by whole seconds, which must not be multiplied.
        set(&[libc::CLOCK_TAI], now(libc::CLOCK_TAI));
        let speed = u64::from(rate) << SPEED_BITS;
        Self { rate, speed, before: speed, origins, shown: origins }
    }

    /// A clock for tests, with the same origin for all converted clock numbers.
    #[cfg(test)]
    pub(crate) fn of_test(rate: u32, origin: i64) -> Self {
        let mut origins = [origin; CLOCKS];
        origins[2] = 0;
        origins[3] = 0;
        origins[10] = 0;
        let speed = u64::from(rate) << SPEED_BITS;
        Self { rate, speed, before: speed, origins, shown: origins }
    }

    /// The rate of the clock without its drift.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// The clock in words of 64 bits, for the code that is added to programs.
    pub fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let all = self.origins.iter().chain(&self.shown).map(|reading| reading.cast_unsigned());
        for (word, value) in words.iter_mut().zip(std::iter::once(self.speed).chain(all).chain([self.before])) {
            *word = value;
        }
        words
    }

    /// The array index of a clock number that is converted; `None` for a clock that is not converted.
    fn place(&self, id: i32) -> Option<usize> {
        usize::try_from(id).ok().filter(|place| self.origins.get(*place).is_some_and(|origin| *origin != 0))
    }

    /// Whether the program sees the clock with this number converted.
    pub fn is_own(&self, id: i32) -> bool {
        self.place(id).is_some()
    }

    /// The numbers of the converted clocks.
    pub fn own_ids(&self) -> impl Iterator<Item = i32> {
        (0..).zip(&self.origins).filter(|(_, origin)| **origin != 0).map(|(id, _)| id)
    }

    /// Converts a duration of the program to real time; rounded up, so that no wait ends early.
    pub fn shorter(&self, own_ns: i128) -> i128 {
        div_up(own_ns << SPEED_BITS, i128::from(self.speed))
    }

    /// Converts a duration of real time to the program's time.
    pub fn longer(&self, real_ns: i128) -> i128 {
        real_ns.saturating_mul(i128::from(self.speed)) >> SPEED_BITS
    }

    /// Converts an instant of the program's time to the kernel's time; rounded up, and never before the kernel's epoch.
    /// `None` for a clock that is not converted.
    pub fn real(&self, id: i32, own_ns: i128) -> Option<i128> {
        let place = self.place(id)?;
        let passed = (own_ns - i128::from(self.shown[place])) << SPEED_BITS;
        let real = i128::from(self.origins[place]) + div_up(passed, i128::from(self.speed_at(passed)));
        Some(real.max(0))
    }

    /// Converts an instant of the kernel's time to the program's time. An instant of a clock that is not converted is
    /// returned unchanged.
    pub fn own(&self, id: i32, real_ns: i128) -> i128 {
        match self.place(id) {
            Some(place) => {
                let passed = real_ns - i128::from(self.origins[place]);
                i128::from(self.shown[place]) + (passed.saturating_mul(i128::from(self.speed_at(passed))) >> SPEED_BITS)
            }
            None => real_ns,
        }
    }

    /// A copy of the clock whose speed is `speed` before and after the origins.
    pub(crate) fn going(&self, speed: u64) -> Self {
        Self { speed, before: speed, ..*self }
    }

    /// The speed at `passed` nanoseconds after the origin; a negative number is a time before the origin.
    pub(crate) fn speed_at(&self, passed: i128) -> u64 {
        if passed < 0 { self.before } else { self.speed }
    }

    /// Converts a real timer period back to the period that the program set, exactly: division loses less than a real
    /// nanosecond, and periods are whole microseconds.
    pub fn period(&self, real_ns: i128) -> i128 {
        let long = self.longer(real_ns);
        let whole = long - long.rem_euclid(1000);
        if long - whole < self.longer(1).max(1) { whole } else { long }
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
        /// A wait never ends early, and at most a nanosecond of real time late.
        #[test]
        fn no_wait_is_shortened_too_far(rate in 1_u32..1000, own in 0_i64..i64::MAX) {
            let clock = Clock::of_test(rate, 1);
            let back = clock.longer(clock.shorter(i128::from(own)));
            prop_assert!(back >= i128::from(own) && back < i128::from(own) + i128::from(rate));
        }

        /// When a wait for an instant ends, the clock shows at least that instant.
        #[test]
        fn an_instant_is_reached_when_the_clock_shows_it(rate in 1_u32..1000, origin in 1_i64..1 << 60, own in 0_i64..1 << 62) {
            let clock = Clock::of_test(rate, origin);
            let real = clock.real(1, i128::from(own)).unwrap();
            prop_assert!(clock.own(1, real) >= i128::from(own));
            // The kernel refuses instants before its epoch.
            prop_assert!(real == 0 || clock.own(1, real - 1) < i128::from(own));
        }

        /// A later time of the clock is never smaller, and the first time equals the kernel's.
        #[test]
        fn time_does_not_go_back(rate in 1_u32..1000, first in 1_i64..1 << 60, step in 0_i64..1 << 40) {
            let clock = Clock::of_test(rate, 1 << 50);
            let own = |real: i64| clock.own(1, i128::from(real));
            prop_assert!(own(first + step) >= own(first));
            prop_assert_eq!(own(1 << 50), 1 << 50);
        }

        /// If a program reads the period of a timer, it gets the period that it set.
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
            assert!(!clock.is_own(id), "{id}");
        }
        assert_eq!(clock.own_ids().collect::<Vec<_>>(), [0, 1, 4, 5, 6, 7, 8, 9, 11]);
    }
}
