//! Flags that choose the processes that send load: this process, workers on this machine, or workers that a command
//! starts elsewhere.

use std::time::Duration;

use anyhow::{Result, ensure};
use loadgen::admission::Plan;

use crate::load::Job;
use crate::load::measure::{self, Measured, Watch};
use crate::load::workers::{self, WORKERS_MAX, Workers};

mod kubernetes;

/// Flags that choose the processes that send load.
#[derive(clap::Args)]
pub(super) struct Senders {
    /// Send load with N worker processes on this machine, each with an equal share of the plan.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(WORKERS_MAX)))]
    workers: Option<u32>,
    /// Send load with a worker that this command starts, such as `ssh HOST longhaul worker`. The command must forward stdin and stdout. The
    /// flag may be given several times, and together with --workers.
    #[arg(long, value_name = "COMMAND")]
    worker: Vec<String>,
    #[command(flatten)]
    kubernetes: kubernetes::Flags,
}

impl Senders {
    /// Refuses wrong values of the flags before any load is sent.
    pub(super) fn check(&self) -> Result<()> {
        let count = self.workers.unwrap_or_default() as usize + self.worker.len();
        ensure!(count <= WORKERS_MAX as usize, "{count} workers are asked for: at most {WORKERS_MAX} send one plan");
        Ok(())
    }

    /// Starts the workers for a load of this length. `None` means that this process sends the load.
    pub(super) async fn open(&self, length: Duration) -> Result<Option<Workers>> {
        if self.kubernetes.is_some() {
            let (job, commands) = self.kubernetes.start(self.workers.unwrap_or(1), length).await?;
            return Workers::in_cluster(job, commands).await.map(Some);
        }
        if self.workers.is_none() && self.worker.is_empty() {
            return Ok(None);
        }
        Workers::open(self.workers.unwrap_or_default(), &self.worker).await.map(Some)
    }
}

/// Sends the plan with the given workers, or with this process.
pub(super) async fn measure(
    job: &Job,
    plan: Plan,
    workers: Option<&mut Workers>,
    watch: &mut Watch,
) -> Result<Measured> {
    match workers {
        None => measure::measure(job, plan, watch).await,
        Some(workers) => workers::measure(job, &plan, workers, watch).await,
    }
}
