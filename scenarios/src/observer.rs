//! What the subject, the harness and the machine use, once a second.
//!
//! A thread of its own reads `/proc`, so that a slow read delays no event and no load. It owns the sampling clock and
//! the bounded channel to the run; when the run falls behind, samples are dropped and the record shows the hole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use reports::record::Sample;
use tokio::sync::mpsc;

use self::machine::Clocks;
use crate::clock::Clock;

mod cgroup;
mod machine;
mod process;
mod sockets;

/// One sample a second: fine enough to see a step, coarse enough to cost nothing.
const PERIOD: Duration = Duration::from_secs(1);
/// `smaps_rollup` walks all page tables: tens of milliseconds on a big map, so once a minute is the most.
const ROLLUP_EVERY: Duration = Duration::from_mins(1);
/// The kernel lists the sockets of all processes, thousands after a burst of connections: that takes milliseconds. A long run has fewer.
const SOCKETS_EVERY: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// A run that is longer than this is a long one.
const LONG_MS: u64 = 2 * 3600 * 1000;
/// A minute of samples may wait for the run.
const QUEUE_MAX: usize = 60;

/// The running observer. Dropping it ends the thread within one period.
pub(crate) struct Observer {
    pub(crate) samples: mpsc::Receiver<Sample>,
    watched: Arc<Watched>,
}

/// What the run tells the observer.
struct Watched {
    /// Process id of the subject's root, 0 while there is none.
    root: AtomicU32,
    /// How often the subject has been started.
    starts: AtomicU32,
    stop: AtomicBool,
}

impl Observer {
    /// Starts sampling.
    pub(crate) fn start(clock: Clock) -> std::io::Result<Self> {
        let (sender, samples) = mpsc::channel(QUEUE_MAX);
        let watched =
            Arc::new(Watched { root: AtomicU32::new(0), starts: AtomicU32::new(0), stop: AtomicBool::new(false) });
        let shared = Arc::clone(&watched);
        std::thread::Builder::new().name("observer".to_owned()).spawn(move || observe(&shared, &sender, &clock))?;
        Ok(Self { samples, watched })
    }

    /// From now on the process tree under `pid` is the subject.
    pub(crate) fn watch(&self, pid: u32) {
        self.watched.starts.fetch_add(1, Ordering::Relaxed);
        self.watched.root.store(pid, Ordering::Relaxed);
    }

    /// The subject is gone; its absence is not a hole in the samples any more.
    pub(crate) fn unwatch(&self) {
        self.watched.root.store(0, Ordering::Relaxed);
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.watched.stop.store(true, Ordering::Relaxed);
    }
}

fn observe(watched: &Watched, sender: &mpsc::Sender<Sample>, clock: &Clock) {
    let mut due = Instant::now();
    let (mut rollup_due, mut sockets_due) = (due, due);
    let clocks = Clocks::read();
    while !watched.stop.load(Ordering::Relaxed) && !sender.is_closed() {
        let now = Instant::now();
        if now < due {
            std::thread::park_timeout(due - now);
            continue;
        }
        due += PERIOD;
        // A machine that slept does not get the missed samples in one burst.
        if due < now {
            due = now + PERIOD;
        }
        let with_rollup = now >= rollup_due;
        if with_rollup {
            rollup_due = now + ROLLUP_EVERY;
        }
        let with_sockets = now >= sockets_due;
        if with_sockets {
            sockets_due = now + SOCKETS_EVERY[usize::from(clock.now_ms() > LONG_MS)];
        }
        let sample = sample(watched, (clock, &clocks), now, (with_rollup, with_sockets));
        // A full queue means that the run hangs: the hole in the record is the honest answer.
        let _ = sender.try_send(sample);
    }
}

fn sample(
    watched: &Watched,
    (clock, clocks): (&Clock, &Clocks),
    now: Instant,
    (with_rollup, with_sockets): (bool, bool),
) -> Sample {
    let root = watched.root.load(Ordering::Relaxed);
    let starts = watched.starts.load(Ordering::Relaxed);
    let tree = i32::try_from(root).ok().filter(|root| *root != 0).map(process::descendants).unwrap_or_default();
    let (subject, rollup_cost) = process::tree(&tree, with_rollup, starts).unzip();
    let (sockets, cgroup) = match tree.first() {
        Some(root) if with_sockets => (sockets::of(&tree), cgroup::of(*root)),
        _ => (None, None),
    };
    let harness = process::own();
    let machine = machine::row(clocks);
    Sample {
        t_ms: clock.at_ms(now),
        subject,
        harness,
        machine,
        sockets,
        cgroup,
        read_cost_us: micros(now.elapsed()),
        rollup_cost_us: rollup_cost.filter(|_| with_rollup).map(micros),
        peak: false,
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
