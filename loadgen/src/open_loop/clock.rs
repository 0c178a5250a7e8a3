//! Absolute times of the kernel's monotonic clock, and sleeping to them.

use std::time::{Duration, Instant};

/// How often the two clocks are compared.
#[cfg(target_os = "linux")]
const CLOCK_LOOKS: usize = 8;

/// The kernel's monotonic clock.
#[cfg(target_os = "linux")]
fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Absolute times of the monotonic clock, and sleeping to them.
#[cfg(target_os = "linux")]
pub(crate) struct Clock {
    instant: Instant,
    monotonic: Duration,
}

#[cfg(target_os = "linux")]
impl Clock {
    /// A thread that is interrupted between two readings of the clocks would place one far from the other: the closest
    /// of a few readings counts.
    pub(crate) fn new() -> Self {
        let pairs = std::iter::repeat_with(|| {
            // In this order the requested time is never earlier than the meant one. A timer that fires before its time
            // is handled as one that has not fired.
            let instant = Instant::now();
            let monotonic = since_boot();
            (instant.elapsed(), Self { instant, monotonic })
        });
        let closest = pairs.take(CLOCK_LOOKS).min_by_key(|(apart, _)| *apart);
        closest.map_or_else(|| Self { instant: Instant::now(), monotonic: since_boot() }, |(_, clock)| clock)
    }

    /// The instant in the kernel's count. An instant before the clock was made becomes that moment.
    pub(crate) fn absolute(&self, at: Instant) -> rustix::thread::Timespec {
        let absolute = self.monotonic + at.saturating_duration_since(self.instant);
        rustix::thread::Timespec {
            tv_sec: i64::try_from(absolute.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(absolute.subsec_nanos()),
        }
    }

    /// Returns at the time, or earlier if a signal interrupts; the caller reads the clock again.
    pub(super) fn sleep_until(&self, at: Instant) {
        let request = self.absolute(at);
        let _ = rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &request);
    }
}

/// For systems without `clock_nanosleep`: the standard library's sleep.
#[cfg(not(target_os = "linux"))]
pub(super) struct Clock;

#[cfg(not(target_os = "linux"))]
impl Clock {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn sleep_until(&self, at: Instant) {
        std::thread::park_timeout(at.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner of a timer that fires early does not set it again, and then waits for ever.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_absolute_time_is_never_before_its_instant() {
        for _ in 0..10_000 {
            let clock = Clock::new();
            let earliest = since_boot();
            let absolute = clock.absolute(Instant::now());
            let absolute = Duration::new(absolute.tv_sec.try_into().unwrap(), absolute.tv_nsec.try_into().unwrap());
            assert!(absolute >= earliest, "{absolute:?}, which is before {earliest:?}");
        }
    }

    /// The kernel's count and ours have the same pace; a past instant becomes now.
    #[cfg(target_os = "linux")]
    #[test]
    fn absolute_times_are_those_of_the_monotonic_clock() {
        let clock = Clock::new();
        let ahead = |at: Instant| {
            let absolute = clock.absolute(at);
            let since_boot = Duration::new(absolute.tv_sec.try_into().unwrap(), absolute.tv_nsec.try_into().unwrap());
            since_boot.checked_sub(clock.monotonic).unwrap()
        };
        let day = Duration::from_hours(24) + Duration::from_nanos(1);
        assert_eq!(ahead(clock.instant + day), day);
        assert_eq!(ahead(clock.instant), Duration::ZERO);
        assert_eq!(ahead(clock.instant.checked_sub(Duration::from_millis(1)).unwrap()), Duration::ZERO);
    }
}
