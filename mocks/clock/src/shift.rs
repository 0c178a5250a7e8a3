//! Changes of a running clock: a jump or a drift.
//!
//! This module is pure. Each change has the instant at which it was made, so that programs that start later get the
//! same clock. The monotonic clock of a process never goes back. A faster speed begins at once, a slower speed a little
//! later, and only the wall clock jumps back.

use std::fmt;
use std::str::FromStr;

use crate::clock::{CLOCKS, Clock, SPEED_BITS};

/// The longest jump: ten years.
pub const JUMP_NS_MAX: i64 = 10 * 365 * 86_400 * 1_000_000_000;
/// The largest drift, in millionths: the clock runs 0.5 or 1.5 times as fast.
pub const DRIFT_PPM_MAX: i32 = 500_000;
/// The delay before a slower speed begins, in nanoseconds; within that time every program gets the change.
const SLOWER_AFTER_NS: i64 = 250_000_000;
const MILLION: i128 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// Adds nanoseconds to the program's time at once.
    Jump {
        /// The clocks that jump.
        of: Which,
        /// The length of the jump in nanoseconds; negative only for [`Which::Wall`].
        by_ns: i64,
    },
    /// The clock runs by this many millionths faster or slower than its rate.
    Drift {
        /// Millionths; 0 ends the drift.
        ppm: i32,
    },
}

/// Clocks that jump together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The wall clock, as if an administrator set it.
    Wall,
    /// The wall clock and the boot-time clock, but not the monotonic clock, as after a suspend of the machine.
    Suspended,
    /// All clocks, as after a pause of a virtual machine.
    All,
}

/// A change, and the time of the machine's monotonic clock at which it was made, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedShift {
    pub at_ns: i64,
    pub shift: Shift,
}

/// The error for a line that is no change of the clock: the line, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no change of a clock: write `AT jump wall|suspended|all NANOSECONDS` or `AT drift MILLIONTHS`, {1}")]
pub struct Error(String, &'static str);

const WORDS: [(&str, Which); 3] = [("wall", Which::Wall), ("suspended", Which::Suspended), ("all", Which::All)];

impl Which {
    fn has(self, id: i32) -> bool {
        let is_wall = [libc::CLOCK_REALTIME, libc::CLOCK_REALTIME_COARSE, libc::CLOCK_REALTIME_ALARM, libc::CLOCK_TAI];
        let is_boot = [libc::CLOCK_BOOTTIME, libc::CLOCK_BOOTTIME_ALARM];
        match self {
            Self::Wall => is_wall.contains(&id),
            Self::Suspended => is_wall.contains(&id) || is_boot.contains(&id),
            Self::All => true,
        }
    }
}

impl fmt::Display for TimedShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shift {
            Shift::Jump { of, by_ns } => {
                let word = WORDS.iter().find(|(_, which)| *which == of).map_or("", |(word, _)| word);
                write!(f, "{} jump {word} {by_ns}", self.at_ns)
            }
            Shift::Drift { ppm } => write!(f, "{} drift {ppm}", self.at_ns),
        }
    }
}

impl FromStr for TimedShift {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let error = |why| Error(text.to_owned(), why);
        let unknown = || error("with whole numbers");
        let words: Vec<&str> = text.split(' ').collect();
        let (at, shift) = match words[..] {
            [at, "jump", of, by] => {
                let of = WORDS.iter().find(|(word, _)| *word == of).map(|(_, which)| *which).ok_or_else(unknown)?;
                (at, Shift::Jump { of, by_ns: by.parse().map_err(|_| unknown())? })
            }
            [at, "drift", ppm] => (at, Shift::Drift { ppm: ppm.parse().map_err(|_| unknown())? }),
            _ => return Err(unknown()),
        };
        match shift {
            Shift::Jump { of, by_ns } if by_ns < 0 && of != Which::Wall => {
                Err(error("and only the wall clock jumps back"))
            }
            Shift::Jump { by_ns, .. } if by_ns.unsigned_abs() > JUMP_NS_MAX.unsigned_abs() => {
                Err(error("of at most ten years"))
            }
            Shift::Drift { ppm } if ppm.unsigned_abs() > DRIFT_PPM_MAX.unsigned_abs() => {
                Err(error("of at most 500000"))
            }
            shift => Ok(Self { at_ns: at.parse().map_err(|_| unknown())?, shift }),
        }
    }
}

impl Clock {
    /// The clock after a change.
    pub fn shifted(&self, told: TimedShift) -> Self {
        let mut shifted = *self;
        match told.shift {
            Shift::Jump { of, by_ns } => {
                for id in self.own_ids().filter(|id| of.has(*id)) {
                    let shown = &mut shifted.shown[place(id)];
                    // The wall clock never goes before the epoch.
                    *shown = shown.saturating_add(by_ns).max(1);
                }
            }
            Shift::Drift { ppm } => {
                let speed = (i128::from(self.rate()) << SPEED_BITS) * (MILLION + i128::from(ppm)) / MILLION;
                shifted.speed = u64::try_from(speed).unwrap_or(self.speed);
                // A slower speed that has not begun never begins: the present speed of the programs counts.
                let since = told.at_ns - self.origins[place(libc::CLOCK_MONOTONIC)];
                let now = self.speed_at(i128::from(since));
                let unchanged = self.going(now);
                shifted.before = now;
                let passed = since.saturating_add(if shifted.speed < now { SLOWER_AFTER_NS } else { 0 });
                for id in self.own_ids() {
                    let origin = self.origins[place(id)] + passed;
                    shifted.origins[place(id)] = origin;
                    // A nanosecond makes up for rounding.
                    shifted.shown[place(id)] =
                        i64::try_from(unchanged.own(id, i128::from(origin)) + 1).unwrap_or(i64::MAX);
                }
            }
        }
        shifted
    }
}

fn place(id: i32) -> usize {
    usize::try_from(id).unwrap_or(0) % CLOCKS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: i64 = 1 << 50;

    fn shifted(clock: &Clock, text: &str) -> Clock {
        clock.shifted(text.parse().unwrap())
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for text in ["5 jump wall -3", "5 jump suspended 3", "5 jump all 3", "7 drift -500000"] {
            assert_eq!(text.parse::<TimedShift>().unwrap().to_string(), text);
        }
        for (text, why) in [
            ("5 jump all -1", "only the wall clock jumps back"),
            ("5 jump suspended -1", "only the wall clock jumps back"),
            ("5 jump wall 400000000000000000", "of at most ten years"),
            ("5 drift 500001", "of at most 500000"),
            ("5 drift x", "with whole numbers"),
            ("drift 5", "with whole numbers"),
            ("5 jump moon 1", "with whole numbers"),
        ] {
            let error = text.parse::<TimedShift>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn each_jump_is_of_its_clocks() {
        let clock = Clock::of_test(30, START);
        let now = i128::from(START) + 1000;
        for (word, jumping) in [
            ("wall", &[libc::CLOCK_REALTIME, libc::CLOCK_TAI][..]),
            ("suspended", &[libc::CLOCK_REALTIME, libc::CLOCK_TAI, libc::CLOCK_BOOTTIME]),
            ("all", &[libc::CLOCK_REALTIME, libc::CLOCK_TAI, libc::CLOCK_BOOTTIME, libc::CLOCK_MONOTONIC]),
        ] {
            let after = shifted(&clock, &format!("{START} jump {word} 77"));
            for id in [libc::CLOCK_REALTIME, libc::CLOCK_TAI, libc::CLOCK_BOOTTIME, libc::CLOCK_MONOTONIC] {
                let by = if jumping.contains(&id) { 77 } else { 0 };
                assert_eq!(after.own(id, now) - clock.own(id, now), by, "{word} {id}");
            }
        }
    }

    #[test]
    fn a_drift_is_its_share_and_ends() {
        let clock = Clock::of_test(10, START);
        let fast = shifted(&clock, &format!("{START} drift 1000"));
        let second = i128::from(START) + 1_000_000_000;
        assert!((fast.own(1, second) - clock.own(1, second) - 10_000_000).abs() < 10);
        let at = START + 1_000_000_000;
        let back = shifted(&fast, &format!("{at} drift 0"));
        let ahead = |after_ns: i128| back.own(1, second + after_ns) - clock.own(1, second + after_ns);
        // The lead stays.
        assert_eq!(ahead(1_000_000_000), ahead(3_000_000_000));
        assert!(ahead(1_000_000_000) >= 10_000_000);
    }

    proptest! {
        /// For any changes of the clock, the monotonic clock does not go back, in whatever order threads read the old
        /// and the new clock. The test assumes that every program is updated in time. The test includes changes that
        /// are made before the previous change has begun, and threads that are delayed between reading the kernel's
        /// time and using the new clock.
        #[test]
        fn the_monotonic_clock_never_goes_back(
            rate in 1_u32..1000, from in -500_000_i32..500_000, to in -500_000_i32..500_000, jump in 0_i64..1 << 50,
            first in prop_oneof![0_i64..500_000_000, 0_i64..1 << 40], told in 0_i64..200_000_000,
            before in prop_oneof![0_i64..1 << 20, 0_i64..1 << 30], after in prop_oneof![0_i64..1 << 20, 0_i64..1 << 30],
        ) {
            let clock = Clock::of_test(rate, START).shifted(TimedShift { at_ns: START, shift: Shift::Drift { ppm: from } });
            let at = START + first;
            for shift in [Shift::Drift { ppm: to }, Shift::Jump { of: Which::All, by_ns: jump }] {
                let changed = clock.shifted(TimedShift { at_ns: at, shift });
                let switch = i128::from(at + told);
                let (early, late) = ((switch - i128::from(before)).max(i128::from(START)), switch + i128::from(after));
                prop_assert!(changed.own(1, late) >= clock.own(1, early));
                prop_assert!(changed.own(1, late + 1) >= changed.own(1, late));
                prop_assert!(changed.own(1, early) >= clock.own(1, early));
            }
        }
    }
}
