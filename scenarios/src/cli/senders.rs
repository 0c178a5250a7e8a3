//! The flags for the sending processes: this one, others that it starts, or others that commands start elsewhere.

use std::time::Duration;

use anyhow::{Result, ensure};
use loadgen::admission::Plan;

use crate::load::Job;
use crate::load::measure::{self, Measured, Watch};
use crate::load::workers::{self, WORKERS_MAX, Workers};

mod kubernetes;

/// Which processes send.
#[derive(clap::Args)]
pub(super) struct Senders {
    /// Send with N processes on this machine, each with its share of the plan.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(WORKERS_MAX)))]
    workers: Option<u32>,
    /// Send with a worker that this command starts, such as `ssh HOST longhaul worker`. The command must pass on stdin and stdout. May be
    /// given several times, and together with --workers.
    #[arg(long, value_name = "COMMAND")]
    worker: Vec<String>,
    #[command(flatten)]
    kubernetes: kubernetes::Flags,
}

impl Senders {
    /// Refuses wrong values before anything is sent.
    pub(super) fn check(&self) -> Result<()> {
        let count = self.workers.unwrap_or_default() as usize + self.worker.len();
        ensure!(count <= WORKERS_MAX as usize, "{count} workers are asked for: at most {WORKERS_MAX} send one plan");
        Ok(())
    }

    /// Starts the workers for a load of this length. `None`: this process sends.
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

/// Sends the plan with these workers or with this process.
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
