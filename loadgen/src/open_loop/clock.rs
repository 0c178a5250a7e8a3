//! Absolute times of the kernel's monotonic clock, and sleeping until such a time.

use std::time::{Duration, Instant};

/// How often Rust's and the kernel's clock are compared when a [`Clock`] is made.
#[cfg(target_os = "linux")]
const CLOCK_LOOKS: usize = 8;

#[cfg(target_os = "linux")]
fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Converts instants to absolute times of the monotonic clock, and sleeps until such a time.
#[cfg(target_os = "linux")]
pub(crate) struct Clock {
    instant: Instant,
    monotonic: Duration,
}

#[cfg(target_os = "linux")]
impl Clock {
    /// Compares Rust's and the kernel's clock several times and uses the comparison that took the least time, because a
    /// thread that is interrupted while it compares them would get a wrong difference.
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

    /// The absolute time of an instant. An instant before the clock was made becomes the time when it was made.
    pub(crate) fn absolute(&self, at: Instant) -> rustix::thread::Timespec {
        let absolute = self.monotonic + at.saturating_duration_since(self.instant);
        rustix::thread::Timespec {
            tv_sec: i64::try_from(absolute.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(absolute.subsec_nanos()),
        }
    }

    /// Sleeps until `at`, or until a signal comes; the caller must read the clock again.
    pub(super) fn sleep_until(&self, at: Instant) {
        let request = self.absolute(at);
        let _ = rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &request);
    }
}

/// The clock for systems without `clock_nanosleep`, which uses the standard library's sleep.
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

    /// An absolute time is never before its instant. If an absolute time were earlier, a timer would fire early, would
    /// not be set again, and its owner would wait for ever.
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

    /// Absolute times advance as fast as the kernel's clock; a past instant becomes now.
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
