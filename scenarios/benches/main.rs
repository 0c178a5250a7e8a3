//! `cargo xtask bench admission`, `inject`, `kube`, `load` and `replicas`: the cost of one program of Longhaul,
//! compared with the least possible cost or with alternatives.
//!
//! This module parses the command line and runs the requested benchmark; `kit` has the code that all benchmarks share.
//! Measured programs are separate processes. The benchmark's process is the client of measured programs and runs the
//! servers that they need. With `cargo test` this benchmark measures nothing.

mod admission;
mod inject;
mod kit;
mod kube;
mod load;
mod replicas;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

use kit::cores::Cores;
use kit::floor;
use kit::report::Report;
use reports::exit;

#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Cli {
    /// Measure with fewer and shorter rounds, and smaller sizes.
    #[arg(long, global = true)]
    quick: bool,
    /// Write all figures to this file.
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<PathBuf>,
    /// Ignored: `cargo bench` gives this argument to every benchmark.
    #[arg(long, hide = true, global = true)]
    bench: bool,
    #[command(subcommand)]
    what: Option<Benchmark>,
}

/// Exit code: 0 if every requirement is met, 1 if one is not, 2 if one could not be measured.
#[derive(Subcommand)]
enum Benchmark {
    Admission(admission::Arguments),
    Inject(inject::Arguments),
    Kube(kube::Arguments),
    Load(load::Arguments),
    Replicas(replicas::Arguments),
    /// Run as the plain hyper server. The benchmark starts this command in a separate process.
    #[command(hide = true)]
    Floor(floor::Arguments),
    /// Run as the load generator. The benchmark starts this command in a separate process.
    #[command(hide = true)]
    Generate {
        /// An `ours::Task` as JSON.
        task: String,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.what {
        Some(Benchmark::Floor(arguments)) => floor::serve(arguments).map(|()| true),
        Some(Benchmark::Generate { task }) => load::ours::generate(task).map(|()| true),
        Some(what) if cli.bench => run(what, &cli),
        _ => {
            // `cargo test --all-targets` runs benchmarks without that flag.
            println!("skipped: needs `cargo xtask bench`");
            return ExitCode::SUCCESS;
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(exit::INCONCLUSIVE)
        }
    }
}

/// Returns true if every requirement is met. If a measurement fails, the figures of earlier measurements are still
/// written and shown.
fn run(what: &Benchmark, cli: &Cli) -> Result<bool> {
    // This comes before there is any thread, so that all of them stay off the subject's processor.
    let cores = if matches!(what, Benchmark::Admission(_)) { Cores::divide()? } else { Cores::shared() };
    let threads = if cores.are_divided() { 1 } else { 2 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let mut report = Report::default();
    let measured = runtime.block_on(async {
        let work = async {
            match what {
                Benchmark::Admission(arguments) => admission::measure(arguments, cli.quick, &cores, &mut report).await,
                Benchmark::Inject(_) => inject::measure(cli.quick, &mut report).await,
                Benchmark::Kube(arguments) => kube::measure(arguments, cli.quick, &mut report).await,
                Benchmark::Replicas(arguments) => replicas::measure(arguments, cli.quick, &mut report).await,
                Benchmark::Load(arguments) => load::measure(arguments, cli.quick, &mut report).await,
                Benchmark::Floor(_) | Benchmark::Generate { .. } => Ok(()),
            }
        };
        tokio::select! {
            measured = work => measured,
            // Dropping the started processes ends them.
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.map_err(Into::into).and_then(|()| anyhow::bail!("interrupted"))
            }
        }
    });
    if let Some(path) = &cli.json {
        let text = serde_json::to_string_pretty(report.json())? + "\n";
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    let met = report.finish();
    measured.map(|()| met)
}
