//! What the mock API server costs beside a real one: `cargo xtask bench kube`.
//!
//! Owns the command line and the order of things. Each server is a process of its own; this process is the client of
//! both, over TLS and HTTP/1.1, with the same code and the same bytes. Nothing here is timed by `cargo test`.

mod figures;
mod load;
mod measure;
mod server;
mod table;
mod watchers;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;

use measure::{Effort, Subject};
use server::Server;

/// Work of the mock for each unit of work of the real server.
const WORK: usize = 5;
/// Descriptors besides those of the watchers: connections, pipes, the runtime.
const DESCRIPTORS_SPARE: u64 = 200;

const FULL: Effort =
    Effort { rounds: 3, list_objects: &[5_000, 50_000], divisor: 1, paced_for: Duration::from_secs(5), crowd: 10_000 };
const QUICK: Effort =
    Effort { rounds: 1, list_objects: &[5_000], divisor: 2, paced_for: Duration::from_secs(2), crowd: 2_000 };

/// Measures the mock API server and, when KUBEBUILDER_ASSETS names a folder with its programs, a real one beside it.
/// Exit 0 when every requirement is met, 1 when not.
#[derive(Parser)]
#[command(name = "cargo xtask bench kube")]
struct Cli {
    /// Fewer samples, no list of 50,000 objects, 2,000 watchers instead of 10,000.
    #[arg(long)]
    quick: bool,
    /// Where all samples are written.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Leave the real server out.
    #[arg(long)]
    mock_only: bool,
    /// What `cargo bench` says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    if !cli.bench {
        // `cargo test --all-targets` runs benchmarks without that flag.
        println!("skipped: needs `cargo xtask bench kube`");
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(&cli))
}

async fn run(cli: &Cli) -> Result<ExitCode> {
    let effort = if cli.quick { QUICK } else { FULL };
    raise_descriptors(effort.crowd as u64 + DESCRIPTORS_SPARE)?;
    let epoch = Instant::now();
    let mut subjects = vec![Subject::new(Server::mock().await?, WORK, epoch).await.context("on the mock")?];
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|assets| !cli.mock_only && !assets.is_empty());
    if let Some(assets) = assets {
        let real = Server::real(assets.into()).await.context("failed to start a real server")?;
        subjects.push(Subject::new(real, 1, epoch).await.context("on the real server")?);
    }
    let measured = tokio::select! {
        measured = measure::all(&mut subjects, effort) => measured,
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Into::into).and_then(|()| bail!("interrupted")),
    };
    let outcome = match measured {
        Ok(()) => report(cli, &subjects),
        Err(error) => Err(error),
    };
    for subject in subjects {
        subject.server.stop().await;
    }
    outcome
}

fn report(cli: &Cli, subjects: &[Subject]) -> Result<ExitCode> {
    let [mock, rest @ ..] = subjects else { bail!("nothing was measured") };
    if let Some(path) = &cli.json {
        let text = serde_json::to_string_pretty(&table::json(mock, rest.first()))?;
        std::fs::write(path, text + "\n").with_context(|| format!("failed to write {}", path.display()))?;
    }
    let met = table::print(mock, rest.first());
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lets this process open as many connections as it needs.
fn raise_descriptors(needed: u64) -> Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        let maximum = limit.maximum.unwrap_or_default();
        bail!("this needs {needed} open files and the hard limit is {maximum}: raise it (`ulimit -Hn`) or use --quick");
    }
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("failed to raise the limit of open files")
}
