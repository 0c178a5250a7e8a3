//! Our generator beside the ones people know: `cargo xtask bench load`.
//!
//! Owns the command line and the order of things. One hyper TLS server and every generator, ours as well, are processes of
//! their own; what a generator costs is read from the kernel's account of ended children. Nothing here is timed by
//! `cargo test`.

mod figures;
mod honesty;
mod ours;
mod output;
mod server;
mod speed;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// Nothing can be said; 1 is a requirement that is not met.
const EXIT_NOT_MEASURED: u8 = 2;

/// Measures the load generator beside wrk, h2load, hey, ab and oha, those of them that are installed. Without a choice:
/// speed, honesty and lateness, about five minutes. Exit 0 when every requirement is met, 1 when not, 2 when it could not be
/// measured.
#[derive(Parser)]
#[command(name = "cargo xtask bench load")]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
struct Cli {
    /// Only the highest rates and the CPU time of a request.
    #[arg(long)]
    speed: bool,
    /// Only what is reported of a server that freezes, and how late requests are.
    #[arg(long)]
    honesty: bool,
    /// Only memory after one and after ten million requests; ten minutes or more.
    #[arg(long)]
    memory: bool,
    /// One round of one second each, and a single freeze.
    #[arg(long)]
    quick: bool,
    /// Where everything is written as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What `cargo bench` says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What the benchmark starts itself as.
#[derive(Subcommand)]
enum Part {
    /// The server.
    #[command(hide = true)]
    Serve,
    /// Our generator.
    #[command(hide = true)]
    Generate {
        /// An `ours::Task` as JSON.
        task: String,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.part {
        Some(Part::Serve) => server::serve(),
        Some(Part::Generate { task }) => ours::generate(task),
        None if cli.bench => run(&cli),
        None => {
            // `cargo test --all-targets` runs benchmarks without that flag.
            println!("skipped: needs `cargo xtask bench load`");
            return ExitCode::SUCCESS;
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench load: {error:#}");
            ExitCode::from(EXIT_NOT_MEASURED)
        }
    }
}

fn run(cli: &Cli) -> Result<bool> {
    let everything = !(cli.speed || cli.honesty || cli.memory);
    let server = server::Server::start()?;
    let body = ours::body()?;
    println!(
        "server: hyper and rustls in a process of its own; every request is a POST of {} bytes over TLS\n",
        body.len()
    );
    let tools = tools::Tools::find(&body)?;
    let mut report = figures::Report::default();
    if cli.speed || everything {
        speed::measure(&server, &tools, cli.quick, &mut report)?;
    }
    if cli.honesty || everything {
        honesty::lateness(&server, cli.quick, &mut report)?;
        honesty::measure(&server, &tools, cli.quick, &mut report)?;
    }
    if cli.memory {
        speed::memory(&server, &mut report)?;
    }
    if let Some(path) = &cli.json {
        let text = serde_json::to_string_pretty(&report.json)? + "\n";
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(report.finish())
}
