//! Wakes a poll at an absolute time of the monotonic clock, exact to the microsecond.
//!
//! A poll's own timeout is relative and in milliseconds, so its median lateness is half a millisecond.

use std::io;
use std::time::{Duration, Instant};

/// The time that it takes to sleep and wake; if the alarm is closer, the thread stays awake.
const AWAKE: Duration = Duration::from_micros(10);

#[cfg(target_os = "linux")]
pub(crate) use linux::Alarm;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::Alarm;

/// Whether the time is so close that the thread should not sleep.
fn near(at: Instant, now: Instant) -> bool {
    at.saturating_duration_since(now) <= AWAKE
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{AsRawFd as _, OwnedFd};

    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };

    use super::{Duration, Instant, io, near};
    use crate::open_loop::Clock;

    /// A timer descriptor that is polled together with the sockets.
    pub(crate) struct Alarm {
        descriptor: OwnedFd,
        clock: Clock,
        set: Option<Instant>,
    }

    impl Alarm {
        pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registry.register(&mut SourceFd(&descriptor.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { descriptor, clock: Clock::new(), set: None })
        }

        /// The timeout for the next poll, so that it ends at `at` or earlier: zero if that time is near, else none,
        /// because the timer ends the poll.
        pub(crate) fn timeout(&mut self, at: Instant) -> io::Result<Option<Duration>> {
            let now = Instant::now();
            if near(at, now) {
                return Ok(Some(Duration::ZERO));
            }
            // A timer that fires too early costs one turn. Deadlines move with every answer, and setting it for each
            // would cost more.
            if self.set.is_none_or(|set| set <= now || at < set) {
                let absolute = self.clock.absolute(at);
                let it_value = Timespec { tv_sec: absolute.tv_sec, tv_nsec: absolute.tv_nsec };
                let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
                // Setting it also forgets that it fired, so it never has to be read.
                timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &once)?;
                self.set = Some(at);
            }
            Ok(None)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use mio::{Registry, Token};

    use super::{Duration, Instant, io, near};

    /// The timer for systems without timer descriptors, which uses the poll's own timeout.
    pub(crate) struct Alarm;

    impl Alarm {
        pub(crate) fn new(_: &Registry, _: Token) -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn timeout(&mut self, at: Instant) -> io::Result<Option<Duration>> {
            let now = Instant::now();
            Ok(Some(if near(at, now) { Duration::ZERO } else { at.saturating_duration_since(now) }))
        }
    }
}
