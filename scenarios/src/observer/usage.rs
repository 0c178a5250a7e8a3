//! Total usage of a process tree at one moment, as exactly as the kernel reports it, to compare two builds.

use std::collections::BTreeMap;

use procfs::process::Process;

use super::process::descendants;

/// Maximum difference between two values of the processor time without any work in between, because user and system
/// time are rounded separately.
const TICKS_ROUNDED_NS: u64 = 40_000_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    /// Processor time of each living thread, in nanoseconds.
    threads: BTreeMap<(i32, i32), u64>,
    /// Processor time of the whole tree in the kernel's clock ticks, with ended threads.
    ticks_ns: u64,
    pub(crate) anon_bytes: u64,
    /// Number of reads and writes on files and pipes. Sockets count only if the program uses `read` and `write` on
    /// them.
    file_calls: u64,
}

impl Usage {
    /// Reads the process tree of `root`; `None` if the process is gone.
    pub(crate) fn read(root: u32) -> Option<Self> {
        let mut usage = Self::default();
        let mut seen = 0;
        for pid in descendants(&[i32::try_from(root).ok()?]) {
            // A process that ends while it is read does not count.
            seen += u32::from(usage.add(pid).is_some());
        }
        (seen > 0).then_some(usage)
    }

    fn add(&mut self, pid: i32) -> Option<()> {
        let process = Process::new(pid).ok()?;
        let stat = process.stat().ok()?;
        let tick_ns = 1_000_000_000 / procfs::ticks_per_second().max(1);
        let children = u64::try_from(stat.cutime.max(0) + stat.cstime.max(0)).unwrap_or(0);
        self.ticks_ns += (stat.utime + stat.stime + children) * tick_ns;
        for task in process.tasks().ok()?.flatten() {
            if let Ok(ran) = task.schedstat() {
                self.threads.insert((pid, task.tid), ran.sum_exec_runtime);
            }
        }
        self.anon_bytes += process.status().ok()?.rssanon.unwrap_or(0) * 1024;
        if let Ok(io) = process.io() {
            self.file_calls += io.syscr + io.syscw;
        }
        Some(())
    }

    /// Processor time in nanoseconds since `before`. Threads that ended since `before` are missing. If the clock ticks
    /// show that ended threads used much time, the time in ticks is returned instead.
    pub(crate) fn cpu_ns_since(&self, before: &Self) -> u64 {
        let since =
            |(thread, now): (&(i32, i32), &u64)| now - (*now).min(before.threads.get(thread).copied().unwrap_or(0));
        let exact: u64 = self.threads.iter().map(since).sum();
        let ticks = self.ticks_ns.saturating_sub(before.ticks_ns);
        if ticks > exact + exact / 20 + TICKS_ROUNDED_NS { ticks } else { exact }
    }

    /// Number of reads and writes since `before`.
    pub(crate) fn file_calls_since(&self, before: &Self) -> u64 {
        self.file_calls.saturating_sub(before.file_calls)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::time::{Duration, Instant};

    use super::*;

    /// Two tenths of a second of work and a hundred calls are counted, with little tolerance.
    #[test]
    fn work_and_calls_of_a_child_are_counted() {
        let script = "read go; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; read go";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let before = Usage::read(child.id()).unwrap();
        let began = Instant::now();
        child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
        let took = began.elapsed();
        let after = Usage::read(child.id()).unwrap();
        let cpu = Duration::from_nanos(after.cpu_ns_since(&before));
        assert!(cpu > Duration::from_millis(10) && cpu < took + Duration::from_millis(60), "{cpu:?} of {took:?}");
        assert!((1..100).contains(&after.file_calls_since(&before)), "{after:?}");
        assert!(after.anon_bytes > 0);
        let pid = child.id();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(Usage::read(pid).is_none());
    }
}
