//! `longhaul load`: sends load to any webhook, without a scenario and without an API server. Sends a plan or a recorded
//! file once, or searches for the highest rate.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use loadgen::admission::Plan;
use reports::judge::Verdict;

use super::senders::{self, Senders};
use super::traffic::{self, Curve, Output, To, Traffic};
use crate::load::limits::{Limits, worst};
use crate::load::live::live;
use crate::load::measure::Watch;
use crate::load::pressure::Reading;
use crate::load::report::{Numbers, Report, SCHEMA, findings};
use crate::load::workers::Workers;
use crate::load::{Job, hlog, summary};
use crate::out::out;
use crate::signals::Signals;

mod capacity;

/// Arguments of `longhaul load`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten, next_help_heading = "Target")]
    to: To,
    #[command(flatten, next_help_heading = "Rate over time")]
    curve: Curve,
    #[command(flatten, next_help_heading = "Traffic")]
    traffic: Traffic,
    #[command(flatten, next_help_heading = "Limits")]
    limits: Limits,
    #[command(flatten, next_help_heading = "Sending processes")]
    senders: Senders,
    #[command(flatten, next_help_heading = "Results")]
    output: Output,
    /// Only print the plan: totals, chart of the rate, first requests, fingerprint.
    #[arg(long)]
    plan: bool,
    /// Before sending, write the plan to a file, so that --replay can send the same load again.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

pub(super) async fn load(arguments: &Arguments) -> Result<Verdict> {
    let Arguments { to, traffic, curve, .. } = arguments;
    if curve.capacity {
        return capacity::search(arguments).await;
    }
    let (job, plan) = if let Some(file) = &curve.replay {
        let file = std::path::absolute(file).with_context(|| format!("failed to resolve {}", file.display()))?;
        traffic::replay(to, traffic, file)?
    } else {
        let job = traffic::job(to, traffic, curve)?;
        let plan = job.plan()?;
        (job, plan)
    };
    send(arguments, &job, plan).await
}

/// Sends the planned load once and writes the report.
async fn send(arguments: &Arguments, job: &Job, plan: Plan) -> Result<Verdict> {
    let Arguments { to, limits, output, senders, .. } = arguments;
    if arguments.plan {
        out!("{}{}", plan.schedule().describe(), plan.describe().trim_end());
        return Ok(Verdict::Pass);
    }
    senders.check()?;
    output.check()?;
    traffic::check(job, &plan, to).await?;
    if let Some(path) = &arguments.record {
        write_plan(&plan, path).with_context(|| format!("--record: failed to write {}", path.display()))?;
    }
    let mut watch = watch(output)?;
    let mut workers = opened(senders, job.length(), &mut watch).await?;
    let (fingerprint, schedule) = (plan.fingerprint(), plan.schedule().summary());
    let count = workers.as_ref().map_or(1, Workers::count);
    let before = Reading::now();
    let measured = senders::measure(job, plan, workers.as_mut(), &mut watch).await?;
    let machine = before.since();
    watch.live.end();
    let findings = findings(&measured, limits, watch.log_ended.as_deref());
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
        machine,
        verdict,
        exit_code: verdict.exit_code(),
        findings,
    };
    Ok(output.finish(&report, &summary::summary(&report), verdict))
}

/// Starts the workers and returns them when all are ready. If a signal such as Ctrl-C comes first, removes the workers
/// that already exist.
async fn opened(senders: &Senders, length: std::time::Duration, watch: &mut Watch) -> Result<Option<Workers>> {
    tokio::select! {
        workers = senders.open(length) => workers,
        signal = watch.signals.next() => anyhow::bail!("{signal}: stopped while workers were started; nothing was sent"),
    }
}

fn write_plan(plan: &Plan, path: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    plan.record(&mut out)?;
    out.flush()
}

/// Observers of a measurement: the progress line, the log of histograms, and Ctrl-C.
fn watch(output: &Output) -> Result<Watch> {
    let log = output.hlog.as_deref().map(hlog::Log::create).transpose().context("--hlog")?;
    let signals = Signals::listen().context("failed to listen for signals")?;
    let (live, log_offset) = (live(output.quiet), std::time::Duration::ZERO);
    Ok(Watch { live, log, log_ended: None, signals, log_offset })
}
