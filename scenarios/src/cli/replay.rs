//! `longhaul replay`: sends what a file says, when it says so, and measures as `load` does.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use reports::judge::Verdict;

use super::load::{Sending, send};
use super::traffic;

/// Arguments of `longhaul replay`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// JSON lines: when each request is due and what it carries, as `longhaul load --record` writes them (docs/load.md).
    file: PathBuf,
    #[command(flatten)]
    sending: Sending,
}

/// Sends the file and exits with its verdict.
pub(super) fn replay(arguments: &Arguments) -> ExitCode {
    super::run(run(arguments))
}

async fn run(arguments: &Arguments) -> Result<Verdict> {
    let Arguments { file, sending } = arguments;
    let file = std::path::absolute(file).with_context(|| format!("failed to resolve {}", file.display()))?;
    let (job, plan) = traffic::replay(&sending.to, &sending.traffic, file)?;
    send(sending, &job, plan, None).await
}
