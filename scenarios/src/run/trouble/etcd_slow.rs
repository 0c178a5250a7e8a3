//! The fault `etcd-slow`: stops etcd for a part of each second, as a disk without answers would. Each stop is a hit.

use std::time::Duration;

use anyhow::{Context as _, Result};
use mock_faults::{EtcdSlowKeys, STALL, STALL_EVERY};
use rustix::process::{Pid, Signal, kill_process};

use super::PlayedFault;

const PROGRAM: &str = "etcd";

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let machinery = deed.machinery()?;
    let stall = deed.fault.keys::<EtcdSlowKeys>().stall.unwrap_or(STALL).0;
    loop {
        let pids = machinery.processes(PROGRAM);
        anyhow::ensure!(!pids.is_empty(), "no process of {PROGRAM} was found");
        let still = Still::of(&pids)?;
        let goes_on = deed.rest(stall).await;
        drop(still);
        deed.hit(format!("etcd was stopped for {} ms", stall.as_millis()));
        if !goes_on || !deed.rest(STALL_EVERY.0.saturating_sub(stall).max(Duration::from_millis(1))).await {
            return Ok(());
        }
    }
}

/// Stopped processes. Dropping this value continues the processes.
struct Still(Vec<Pid>);

impl Still {
    fn of(pids: &[u32]) -> Result<Self> {
        let all = Self(pids.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())).collect());
        for pid in &all.0 {
            kill_process(*pid, Signal::STOP).context("failed to stop etcd")?;
        }
        Ok(all)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        for pid in &self.0 {
            // A process that ended meanwhile needs nothing.
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}
