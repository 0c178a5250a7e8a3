//! `longhaul load`: load on any webhook, without a scenario and without an API server.

use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use loadgen::admission::Plan;
use reports::judge::Verdict;

use super::traffic::{self, Curve, Output, To, Traffic};
use crate::load::limits::{Limits, worst};
use crate::load::live::Live;
use crate::load::measure::{self, Watch};
use crate::load::report::{Numbers, Report, SCHEMA, findings};
use crate::load::workers::{self, WORKERS_MAX, Workers};
use crate::load::{Job, hlog, summary};
use crate::out::out;
use crate::run::signals::Signals;

/// Arguments of `longhaul load`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    to: To,
    #[command(flatten)]
    curve: Curve,
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    senders: Senders,
    /// Write the plan to a file first, so that `longhaul replay` can send the same again.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Only print the plan: totals, the curve of the rate, the first requests, the fingerprint.
    #[arg(long)]
    plan: bool,
}

/// Which processes send.
#[derive(clap::Args)]
pub(super) struct Senders {
    /// Send with so many processes on this machine, each with its share of the plan.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(WORKERS_MAX)))]
    workers: Option<u32>,
    /// Send with workers that listen elsewhere (`longhaul worker --listen`), each with its share of the plan.
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',', conflicts_with = "workers")]
    worker_at: Vec<SocketAddr>,
}

/// Sends the load and exits with its verdict.
pub(super) fn load(arguments: &Arguments) -> ExitCode {
    super::run(run(arguments))
}

async fn run(arguments: &Arguments) -> Result<Verdict> {
    let Arguments { to, curve, traffic, limits, output, senders, record, plan: only_plan } = arguments;
    let job = traffic::job(to, traffic, curve)?;
    let plan = job.plan()?;
    if *only_plan {
        out!("{}{}", plan.schedule().describe(), plan.describe().trim_end());
        return Ok(Verdict::Pass);
    }
    traffic::check(&job, &plan, to).await?;
    if let Some(path) = record {
        write_plan(&plan, path).with_context(|| format!("failed to write {}", path.display()))?;
    }
    finish(&job, plan, senders, limits, output).await
}

fn write_plan(plan: &Plan, path: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    plan.record(&mut out)?;
    out.flush()
}

/// One measurement from its start to its report.
pub(super) async fn finish(
    job: &Job,
    plan: Plan,
    senders: &Senders,
    limits: &Limits,
    output: &Output,
) -> Result<Verdict> {
    let workers = match senders.workers {
        Some(count) => Some(Workers::fork(count).await?),
        None if !senders.worker_at.is_empty() => Some(Workers::connect(&senders.worker_at).await?),
        None => None,
    };
    let mut watch = watch(output)?;
    let (fingerprint, schedule) = (plan.fingerprint(), plan.schedule().summary());
    let count = workers.as_ref().map_or(1, Workers::count);
    let measured = match workers {
        None => measure::measure(job, plan, &mut watch).await?,
        Some(workers) => workers::measure(job, &plan, workers, &mut watch).await?,
    };
    watch.live.end();
    let findings = findings(&measured, limits);
    let verdict = worst(&findings);
    let report = Report {
        schema: SCHEMA,
        url: job.to.url.clone(),
        schedule,
        client: job.config.client.describe().to_owned(),
        seed: job.seed,
        fingerprint,
        workers: count,
        lasted_ms: u64::try_from(measured.lasted.as_millis()).unwrap_or(u64::MAX),
        numbers: Numbers::of(&measured.total),
        verdict,
        exit_code: verdict.exit_code(),
        findings,
    };
    if !traffic::write_json(output, &report)? {
        out!("{}", summary::summary(&report).trim_end());
    }
    Ok(report.verdict)
}

/// Who looks on: the live line, the log of histograms, and Ctrl-C.
pub(super) fn watch(output: &Output) -> Result<Watch> {
    let log = output.hlog.as_deref().map(hlog::Log::create).transpose().context("failed to create the .hlog")?;
    let signals = Signals::listen().context("failed to listen for signals")?;
    Ok(Watch { live: Live::new(output.quiet), log, signals, log_offset: std::time::Duration::ZERO })
}
