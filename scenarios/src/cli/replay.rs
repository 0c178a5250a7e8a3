//! `longhaul replay`: sends what a file says, when it says so, and measures as `load` does.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use reports::judge::Verdict;

use super::load::{Senders, finish};
use super::traffic::{self, Output, To, Traffic};
use crate::load::limits::Limits;
use crate::out::out;

/// Arguments of `longhaul replay`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// JSON lines: when each request is due and what it carries, as `longhaul load --record` writes them (docs/load.md).
    file: PathBuf,
    #[command(flatten)]
    to: To,
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    senders: Senders,
    /// Only print the plan.
    #[arg(long)]
    plan: bool,
}

/// Sends the file and exits with its verdict.
pub(super) fn replay(arguments: &Arguments) -> ExitCode {
    super::run(run(arguments))
}

async fn run(arguments: &Arguments) -> Result<Verdict> {
    let Arguments { file, to, traffic, limits, output, senders, plan: only_plan } = arguments;
    let file = std::path::absolute(file).with_context(|| format!("failed to resolve {}", file.display()))?;
    let (job, plan) = traffic::replay(to, traffic, file)?;
    if *only_plan {
        out!("{}{}", plan.schedule().describe(), plan.describe().trim_end());
        return Ok(Verdict::Pass);
    }
    traffic::check(&job, &plan, to).await?;
    finish(&job, plan, senders, limits, output).await
}
