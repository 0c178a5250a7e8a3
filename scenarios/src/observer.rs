//! Samples the resource usage of subject, harness and machine once a second.
//!
//! A separate thread reads `/proc`, so that a slow read delays no event and no load. This module owns the interval of
//! samples and the bounded channel to the run. If the run falls behind, samples are dropped and the record shows the
//! gap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reports::record::{Process, Sample};
use tokio::sync::mpsc;

use self::machine::Clocks;
use crate::clock::Clock;

mod cgroup;
mod machine;
mod process;
mod sockets;
mod usage;

pub(crate) use machine::Strain;
pub(crate) use usage::Usage;

/// Interval of samples: short enough to show a sudden change, long enough to cost nothing.
const PERIOD: Duration = Duration::from_secs(1);
/// Minimum interval of reading `smaps_rollup`, for which the kernel walks all page tables and takes tens of
/// milliseconds for a large process.
const ROLLUP_EVERY: Duration = Duration::from_mins(1);
/// Interval of counting sockets, in a short and in a long run. The kernel lists the sockets of all processes. After
/// many short connections, listing thousands of sockets takes milliseconds.
const SOCKETS_EVERY: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// Runs that take longer count as long runs.
const LONG_MS: u64 = 2 * 3600 * 1000;
/// Maximum number of queued samples: one minute.
const QUEUE_MAX: usize = 60;

/// The running observer. Dropping this value ends the thread within one period.
pub(crate) struct Observer {
    pub(crate) samples: mpsc::Receiver<Sample>,
    watched: Arc<Watched>,
}

struct Watched {
    /// Root process IDs of the subject's process trees; empty while the subject does not run.
    roots: Mutex<Vec<u32>>,
    /// The latest resource usage that kubelets reported since the last sample, if the subject runs on other machines.
    told: Mutex<Option<Process>>,
    /// Number of the subject's starts.
    starts: AtomicU32,
    stop: AtomicBool,
}

impl Observer {
    pub(crate) fn start(clock: Clock) -> std::io::Result<Self> {
        let (sender, samples) = mpsc::channel(QUEUE_MAX);
        let watched = Arc::new(Watched {
            roots: Mutex::default(),
            told: Mutex::default(),
            starts: AtomicU32::new(0),
            stop: AtomicBool::new(false),
        });
        let shared = Arc::clone(&watched);
        std::thread::Builder::new().name("observer".to_owned()).spawn(move || observe(&shared, &sender, &clock))?;
        Ok(Self { samples, watched })
    }

    /// Sets the roots of the subject's process trees, after one process was started.
    pub(crate) fn watch(&self, pids: Vec<u32>) {
        self.watched.starts.fetch_add(1, Ordering::Relaxed);
        *self.watched.roots.lock() = pids;
    }

    /// Sets the remaining roots of process trees, after one process has ended.
    pub(crate) fn left(&self, pids: Vec<u32>) {
        *self.watched.roots.lock() = pids;
    }

    /// Receives the subject's resource usage that kubelets reported.
    pub(crate) fn report(&self, used: Process) {
        *self.watched.told.lock() = Some(used);
    }

    /// Stops sampling the subject, so that its absence is no gap.
    pub(crate) fn unwatch(&self) {
        self.watched.roots.lock().clear();
    }
}

/// All processes of a tree, by the process ID of its root.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let all = i32::try_from(root).ok().map(|root| process::descendants(&[root])).unwrap_or_default();
    all.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect()
}

/// The usage of the process tree of `root`; `None` if the process is gone.
pub(crate) fn used(root: u32) -> Option<Process> {
    let root = i32::try_from(root).ok()?;
    process::tree(&process::descendants(&[root]), false, 1).map(|(used, _)| used)
}

/// The sum of the highest resident memory that the kernel noted for each process of the tree, in bytes.
pub(crate) fn peak(root: u32) -> Option<u64> {
    let peaks = tree(root).into_iter().filter_map(process::peak);
    peaks.reduce(|sum, one| sum + one)
}

/// Resets the highest resident memory that the kernel noted for each process of the tree. Returns whether that worked.
pub(crate) fn forget_peak(root: u32) -> bool {
    tree(root).into_iter().all(|pid| std::fs::write(format!("/proc/{pid}/clear_refs"), "5").is_ok())
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
        // After a suspend of the machine, the missed samples do not come in one burst.
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
        // A full queue means that the run hangs; the record shows the gap.
        let _ = sender.try_send(sample);
    }
}

fn sample(
    watched: &Watched,
    (clock, clocks): (&Clock, &Clocks),
    now: Instant,
    (with_rollup, with_sockets): (bool, bool),
) -> Sample {
    let roots: Vec<i32> = watched.roots.lock().iter().filter_map(|pid| i32::try_from(*pid).ok()).collect();
    let starts = watched.starts.load(Ordering::Relaxed);
    let tree = if roots.is_empty() { Vec::new() } else { process::descendants(&roots) };
    let (subject, rollup_cost) = process::tree(&tree, with_rollup, starts).unzip();
    // Each report is used once: a report every ten seconds makes no ten samples.
    let told = watched.told.lock().take().map(|told| Process { starts, ..told });
    let subject = subject.or(told);
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
