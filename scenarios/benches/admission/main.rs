//! What the service costs beside the least that any webhook costs: `cargo xtask bench admission`.
//!
//! Owns the command line and the order of things. Each webhook is a process of its own on a processor of its own; this
//! process is the client and the registry of all, with the same bytes. Nothing here is timed by `cargo test`.

mod cores;
mod digester;
mod floor;
mod measure;
mod memory;
mod report;
mod subject;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use measure::Effort;
use report::Report;

/// Nothing can be said; 1 is a requirement that is not met.
const EXIT_NOT_MEASURED: u8 = 2;

const FULL: Effort = Effort { rounds: 7, window: Duration::from_secs(3), paced: Duration::from_secs(20) };
const QUICK: Effort = Effort { rounds: 2, window: Duration::from_secs(1), paced: Duration::from_secs(5) };

/// Measures the service's webhook beside a bare hyper server that reads the body and answers a constant, and beside
/// k8s-digester's webhook when there is a Go toolchain; or what verifying costs. Without a choice: everything but that, about five minutes. Exit 0 when every
/// requirement is met, 1 when not, 2 when it could not be measured.
#[derive(Parser)]
#[command(name = "cargo xtask bench admission")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own, and they go together in any way")]
struct Cli {
    /// Two rounds of one second each.
    #[arg(long)]
    quick: bool,
    /// Measure only this.
    #[arg(long, value_name = "WHAT")]
    only: Option<What>,
    /// Measure what verifying signatures costs instead, beside `cosign verify` when there is cosign.
    #[arg(long, conflicts_with = "only")]
    verify: bool,
    /// Leave k8s-digester out.
    #[arg(long)]
    no_digester: bool,
    /// Where all samples are written.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What `cargo bench` says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What can be measured alone.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Throughput, CPU time and latency.
    Speed,
    /// Memory with 100 and with 1,000 connections.
    Memory,
}

/// What the benchmark starts itself as.
#[derive(Subcommand)]
enum Part {
    /// The bare server.
    #[command(hide = true)]
    Floor(floor::Arguments),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.part {
        Some(Part::Floor(arguments)) => floor::serve(arguments).map(|()| true),
        None if cli.bench => run(&cli),
        None => {
            // `cargo test --all-targets` runs benchmarks without that flag.
            println!("skipped: needs `cargo xtask bench admission`");
            return ExitCode::SUCCESS;
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench admission: {error:#}");
            ExitCode::from(EXIT_NOT_MEASURED)
        }
    }
}

fn run(cli: &Cli) -> Result<bool> {
    // Before any thread is there, so that all of them stay off the subject's processor.
    let cores = cores::Cores::divide()?;
    scenarios::descriptors::raise(memory::DESCRIPTORS)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let work = measured(cli, &cores);
        tokio::select! {
            outcome = work => outcome,
            // Dropping the subjects kills them.
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.map_err(Into::into).and_then(|()| anyhow::bail!("interrupted"))
            }
        }
    })
}

async fn measured(cli: &Cli, cores: &cores::Cores) -> Result<bool> {
    let effort = if cli.quick { QUICK } else { FULL };
    let world = subject::World::start(cores).await?;
    let mut report = Report::default();
    println!("{}", cores.describe());
    if cli.verify {
        verify::measure(&world, cores, effort, &mut report).await?;
        return finish(cli, report);
    }
    let mut subjects = vec![subject::floor(&world, cores).await?, subject::service(&world, cores).await?];
    if !cli.no_digester && cli.only != Some(What::Memory) {
        match digester::start(&world, cores).await {
            Ok(digester) => subjects.push(digester),
            Err(missing) => println!("k8s-digester is left out: skipped: needs {missing}"),
        }
    }
    if cli.only != Some(What::Memory) {
        measure::speed(&world, &subjects, effort, &mut report).await?;
    }
    if cli.only != Some(What::Speed) {
        memory::measure(&world, &subjects[..2], &mut report).await?;
    }
    finish(cli, report)
}

/// Writes and prints what was found; true when every requirement is met.
fn finish(cli: &Cli, report: Report) -> Result<bool> {
    if let Some(path) = &cli.json {
        let text = serde_json::to_string_pretty(report.json())? + "\n";
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(report.finish())
}
