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

use measure::{Effort, Part, Subject};
use server::Server;

/// Work of the mock for each unit of work of the real server.
const WORK: usize = 10;
/// Descriptors besides those of the watchers: connections, pipes, the runtime.
const DESCRIPTORS_SPARE: u64 = 200;

/// Nothing can be said; 1 is a requirement that is not met.
const EXIT_NOT_MEASURED: u8 = 2;

const FULL: Effort = Effort {
    only: None,
    rounds: 3,
    list_objects: &[5_000, 50_000],
    divisor: 1,
    paced_for: Duration::from_secs(5),
    crowd: 10_000,
};
const QUICK: Effort = Effort {
    only: None,
    rounds: 1,
    list_objects: &[5_000],
    divisor: 2,
    paced_for: Duration::from_secs(2),
    crowd: 2_000,
};

/// Measures the mock API server and, when `KUBEBUILDER_ASSETS` names a folder with its programs, a real one beside it.
/// Exit 0 when every requirement is met, 1 when not, 2 when it could not be measured.
#[derive(Parser)]
#[command(name = "cargo xtask bench kube")]
struct Cli {
    /// Fewer samples, no list of 50,000 objects, 2,000 watchers instead of 10,000.
    #[arg(long)]
    quick: bool,
    /// One part alone.
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
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

fn main() -> ExitCode {
    let cli = Cli::parse();
    if !cli.bench {
        // `cargo test --all-targets` runs benchmarks without that flag.
        println!("skipped: needs `cargo xtask bench kube`");
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.context("failed to start the runtime").and_then(|runtime| runtime.block_on(run(&cli))) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench kube: {error:#}");
            ExitCode::from(EXIT_NOT_MEASURED)
        }
    }
}

async fn run(cli: &Cli) -> Result<ExitCode> {
    let effort = Effort { only: cli.only, ..if cli.quick { QUICK } else { FULL } };
    scenarios::descriptors::raise(effort.crowd as u64 + DESCRIPTORS_SPARE)?;
    let epoch = Instant::now();
    let work = async {
        let mut fresh = start(cli, epoch).await?;
        let measured = measure::fresh(&mut fresh, effort).await;
        let mut figures = Vec::new();
        for subject in fresh {
            subject.server.stop().await;
            figures.push(subject.figures);
        }
        measured?;
        let mut subjects: Vec<Subject> =
            start(cli, epoch).await?.into_iter().zip(figures).map(|(subject, known)| subject.with(known)).collect();
        let measured = measure::all(&mut subjects, effort).await;
        // What was measured before something failed is shown.
        let outcome = report(cli, &subjects);
        for subject in subjects {
            subject.server.stop().await;
        }
        measured.and(outcome)
    };
    tokio::select! {
        outcome = work => outcome,
        // Dropping the servers kills them.
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Into::into).and_then(|()| bail!("interrupted")),
    }
}

/// Starts the mock and, if it is there, the real server.
async fn start(cli: &Cli, epoch: Instant) -> Result<Vec<Subject>> {
    let mut subjects = vec![Subject::new(Server::mock().await?, WORK, epoch).await.context("on the mock")?];
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|assets| !cli.mock_only && !assets.is_empty());
    if let Some(assets) = assets {
        let real = Server::real(assets.into()).await.context("failed to start a real server")?;
        subjects.push(Subject::new(real, 1, epoch).await.context("on the real server")?);
    }
    Ok(subjects)
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
