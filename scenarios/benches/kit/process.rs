//! Starts and ends the measured processes, and reads their CPU time and memory from `/proc`.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use procfs::WithCurrentSystemInfo as _;
use procfs::process::Process;

/// Interval between two checks whether a process is ready.
const START_LOOK: Duration = Duration::from_millis(50);

/// The processes that are measured together. Dropping this value does not end the processes.
pub(crate) struct Measured(Vec<Process>);

/// A process that the benchmark started, and that ends on drop.
pub(crate) struct Running {
    child: Child,
    pub(crate) measured: Measured,
}

impl Measured {
    pub(crate) fn new(pids: &[u32]) -> Result<Self> {
        pids.iter().map(|pid| Ok(Process::new(i32::try_from(*pid)?)?)).collect::<Result<_>>().map(Self)
    }

    /// CPU time of all threads, in microseconds, from each thread's own file, because `/proc/PID/stat` counts in steps
    /// of 10 ms. Measured processes do not end threads, so no CPU time is lost with an ended thread.
    pub(crate) fn cpu_us(&self) -> Result<f64> {
        let mut total_ns = 0;
        for process in &self.0 {
            for task in process.tasks().context("it has ended")? {
                total_ns += task?.schedstat()?.sum_exec_runtime;
            }
        }
        Ok(total_ns as f64 / 1e3)
    }

    /// Resident memory now, in bytes.
    pub(crate) fn rss_bytes(&self) -> Result<f64> {
        let mut total = 0;
        for process in &self.0 {
            total += process.stat().context("it has ended")?.rss_bytes().get();
        }
        Ok(total as f64)
    }

    pub(crate) fn rss_mib(&self) -> Result<f64> {
        Ok(self.rss_bytes()? / f64::from(1 << 20))
    }
}

impl Running {
    /// Waits until the process `child`, which was just started, is ready.
    pub(crate) async fn start(
        name: &str,
        child: Child,
        limit: Duration,
        is_ready: impl AsyncFn() -> bool,
    ) -> Result<Self> {
        let measured = Measured::new(&[child.id()])?;
        let mut running = Self { child, measured };
        let deadline = Instant::now() + limit;
        while !is_ready().await {
            if let Some(status) = running.child.try_wait()? {
                bail!("{name} ended at once with {status}");
            }
            if Instant::now() > deadline {
                bail!("{name} is not ready after {limit:?}");
            }
            tokio::time::sleep(START_LOOK).await;
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loopback address with a port that was free a moment ago.
pub(crate) fn free() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to find a free port")?;
    Ok(listener.local_addr()?)
}

/// The path of a program that was built into the same folder as `longhaul`.
pub(crate) fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_longhaul")).with_file_name(name)
}
