//! The pacing thread: hands each planned item over at its planned time.
//!
//! A thread of its own with absolute sleeps, because an async timer on a busy machine is a millisecond or two late at
//! the median, and relative sleeps add up their errors. It never waits for the other side: an item that finds the
//! bounded queue full is counted as overflow and dropped. It knows nothing of what it hands over.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// The thread looks this often whether it should stop; a sleep is never longer.
const LOOK_UP: Duration = Duration::from_millis(50);

/// An item whose time has come.
#[derive(Debug)]
pub(crate) struct Due<T> {
    /// When it was to be sent.
    pub planned: Instant,
    pub item: T,
}

/// What the pacing thread counts. Taken and reset by the interval.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Items whose time has come.
    pub planned: AtomicU64,
    /// Of these, those that could not even be started.
    pub overflow: AtomicU64,
}

impl Counts {
    pub(crate) fn planned_one(&self) {
        self.planned.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn overflow_one(&self) {
        self.overflow.fetch_add(1, Ordering::Relaxed);
    }

    /// (planned, overflow) since the last call.
    pub(crate) fn take(&self) -> (u64, u64) {
        (self.planned.swap(0, Ordering::Relaxed), self.overflow.swap(0, Ordering::Relaxed))
    }
}

/// The running thread. Dropping it stops it and waits for its end, which takes at most one look-up.
#[derive(Debug)]
pub(crate) struct Pacer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pacer {
    /// Starts the thread. `source` yields offsets from `begin`, in order; when it ends, `out` is closed.
    pub(crate) fn start<T: Send + 'static>(
        name: &str,
        begin: Instant,
        source: impl Iterator<Item = (Duration, T)> + Send + 'static,
        out: mpsc::Sender<Due<T>>,
        counts: Arc<Counts>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(begin, source, &out, &counts, &stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Asks the thread to end; items not yet due are never handed over.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed by the panic hook; there is nothing to add here.
            let _ = thread.join();
        }
    }
}

fn run<T>(
    begin: Instant,
    source: impl Iterator<Item = (Duration, T)>,
    out: &mpsc::Sender<Due<T>>,
    counts: &Counts,
    stop: &AtomicBool,
) {
    // The kernel may add 50 us to each sleep to save power; ask for the least. A refusal costs lateness, which shows.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let clock = Clock::new();
    for (offset, item) in source {
        let planned = begin + offset;
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now >= planned {
                break;
            }
            clock.sleep_until(planned.min(now + LOOK_UP));
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        counts.planned_one();
        match out.try_send(Due { planned, item }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => counts.overflow_one(),
            Err(mpsc::error::TrySendError::Closed(_)) => return,
        }
    }
}

/// How often the two clocks are compared.
#[cfg(target_os = "linux")]
const CLOCK_LOOKS: usize = 8;

/// What the kernel's monotonic clock shows.
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
    /// A thread that is put off between two looks at the clock would place the one far from the other: the closest of a few counts.
    pub(crate) fn new() -> Self {
        let pairs = std::iter::repeat_with(|| {
            // In this order: what is asked for is then never earlier than what was meant. A timer that fires before its time is
            // taken for one that has yet to fire.
            let instant = Instant::now();
            let monotonic = since_boot();
            (instant.elapsed(), Self { instant, monotonic })
        });
        let closest = pairs.take(CLOCK_LOOKS).min_by_key(|(apart, _)| *apart);
        closest.map_or_else(|| Self { instant: Instant::now(), monotonic: since_boot() }, |(_, clock)| clock)
    }

    /// The instant as the kernel counts it. An instant from before the clock was made is taken for that moment.
    pub(crate) fn absolute(&self, at: Instant) -> rustix::thread::Timespec {
        let absolute = self.monotonic + at.saturating_duration_since(self.instant);
        rustix::thread::Timespec {
            tv_sec: i64::try_from(absolute.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(absolute.subsec_nanos()),
        }
    }

    /// Returns at the time, or earlier when a signal interrupts; the caller looks at the clock again.
    fn sleep_until(&self, at: Instant) {
        let request = self.absolute(at);
        let _ = rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &request);
    }
}

/// Where `clock_nanosleep` does not exist: the standard library's best.
#[cfg(not(target_os = "linux"))]
struct Clock;

#[cfg(not(target_os = "linux"))]
impl Clock {
    fn new() -> Self {
        Self
    }

    fn sleep_until(&self, at: Instant) {
        std::thread::park_timeout(at.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is handed over before its time, order is kept, and the queue closes at the end.
    #[test]
    fn never_early_and_in_order() {
        let begin = Instant::now();
        let (out, mut queue) = mpsc::channel(64);
        let counts = Arc::new(Counts::default());
        let source = (0..20u64).map(|i| (Duration::from_millis(i), i));
        let _pacer = Pacer::start("test-pacer", begin, source, out, Arc::clone(&counts)).unwrap();
        let mut seen = Vec::new();
        while let Some(due) = queue.blocking_recv() {
            assert!(Instant::now() >= due.planned);
            assert_eq!(due.planned, begin + Duration::from_millis(due.item));
            seen.push(due.item);
        }
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
        assert_eq!(counts.take(), (20, 0));
        assert_eq!(counts.take(), (0, 0));
    }

    /// A full queue is counted, never waited for.
    #[test]
    fn full_queue_is_overflow() {
        let (out, mut queue) = mpsc::channel(4);
        let counts = Arc::new(Counts::default());
        let mut pacer =
            Pacer::start("test-pacer", Instant::now(), (0..100).map(|i| (Duration::ZERO, i)), out, Arc::clone(&counts))
                .unwrap();
        pacer.thread.take().unwrap().join().unwrap();
        assert_eq!(counts.take(), (100, 96));
        assert_eq!(queue.blocking_recv().unwrap().item, 0, "the earliest are kept");
    }

    /// A timer that fires early is not set again by its owner, who then waits for ever.
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

    /// The kernel's count and ours go at the same pace; what is past is now.
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

    /// Dropping ends the thread long before its next item is due.
    #[test]
    fn drop_ends_it() {
        let (out, mut queue) = mpsc::channel::<Due<u32>>(4);
        let source = std::iter::repeat_n((Duration::from_hours(1), 1), 3);
        drop(Pacer::start("test-pacer", Instant::now(), source, out, Arc::new(Counts::default())).unwrap());
        assert!(queue.blocking_recv().is_none());
    }
}
