//! Starts workers: processes of this program, and commands that start this program elsewhere.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use super::job::Job;
use super::peer::{HELLO_LIMIT, Worker};
use super::protocol::{PROTOCOL, Word, cut};

/// Workers that have sent their hello, and their Job, which is removed when the workers have ended.
pub(crate) struct Workers(pub(super) Vec<Worker>, Option<Job>);

impl Workers {
    /// Starts `count` processes of this program on this machine, and one worker with each command, which `sh` runs.
    pub(crate) async fn open(count: u32, commands: &[String]) -> Result<Self> {
        let program = std::env::current_exe().context("failed to find this program")?;
        let mut starts = Vec::new();
        for _ in 0..count {
            let mut command = Command::new(&program);
            command.arg("worker");
            starts.push((command, None));
        }
        for text in commands {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            starts.push((command, Some(cut(text))));
        }
        Ok(Self(greeted(starts, false).await?, None))
    }

    /// The workers of a Job; `commands` attach to its Pods.
    pub(crate) async fn in_cluster(job: Job, commands: Vec<(Command, String)>) -> Result<Self> {
        let starts = commands.into_iter().map(|(command, pod)| (command, Some(pod))).collect();
        Ok(Self(greeted(starts, true).await?, Some(job)))
    }

    /// Whether the workers are Pods, which a cluster may remove.
    pub(super) const fn are_pods(&self) -> bool {
        self.1.is_some()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Starts all workers, then waits for the hello of each. A worker in a Pod first waits for an empty line, because
/// earlier output would be lost.
async fn greeted(starts: Vec<(Command, Option<String>)>, are_attached: bool) -> Result<Vec<Worker>> {
    let mut workers = Vec::new();
    for (number, (mut command, text)) in starts.into_iter().enumerate() {
        // It has its own process group, because the coordinator passes on a Ctrl-C of the terminal.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).kill_on_drop(true);
        let child = command.spawn().with_context(|| format!("failed to start worker {number}"))?;
        let text = text.unwrap_or_else(|| format!("process {}", child.id().unwrap_or_default()));
        workers.push(Worker::new(format!("worker {number} ({text})"), child)?);
    }
    for worker in &mut workers {
        if are_attached {
            worker.begin().await?;
        }
        greet(worker).await?;
    }
    Ok(workers)
}

/// Receives the hello of a worker, and checks its protocol version.
async fn greet(worker: &mut Worker) -> Result<()> {
    let (protocol, version) = match worker.hear(HELLO_LIMIT).await? {
        Word::Hello { protocol, version } => (protocol, version),
        other => return Err(worker.unexpected(&other, "hello")),
    };
    ensure!(
        protocol == PROTOCOL,
        "{} speaks {} (longhaul {}), this program {PROTOCOL}: use the same version of longhaul everywhere",
        worker.name(),
        cut(&protocol),
        cut(&version)
    );
    Ok(())
}
