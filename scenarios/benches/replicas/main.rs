//! What the API over Deployments costs beside the least that any such server costs: `cargo xtask bench replicas`.
//!
//! Three servers answer the same question over TLS 1.3 with client certificates: the service, a bare hyper server that answers a constant
//! (the floor), and a Go server with client-go's informer and net/http, as small as it can be written (`go/main.go`), when there is a Go
//! toolchain. Each is a process of its own; this process is the API server and the client of all. Nothing here is timed by `cargo test`.

mod client;
mod floor;
mod report;
mod subject;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use serde_json::json;

use client::Caller;
use report::{Report, median};
use subject::Subject;
use world::World;

/// Nothing can be said; 1 is a requirement that is not met.
const EXIT_NOT_MEASURED: u8 = 2;
/// Connections that ask one question after the other.
const CONNECTIONS: usize = 16;
/// Of the floor's answers a second, in percent.
const OF_THE_FLOOR_PCT: f64 = 80.0;
/// Deployments, and the resident memory in MiB that they may bring the service to.
const SIZES: [(u32, f64); 2] = [(10_000, 20.0), (100_000, 120.0)];
/// Writes a second by others while counts are read.
const UPDATES_PER_SECOND: u32 = 1000;

/// Measures the service's API over Deployments. Exit 0 when every requirement is met, 1 when not, 2 when it could not be measured.
#[derive(Parser)]
#[command(name = "cargo xtask bench replicas")]
struct Cli {
    /// Two rounds of one second each, and 10,000 Deployments only.
    #[arg(long)]
    quick: bool,
    /// Leave the Go server out.
    #[arg(long)]
    no_go: bool,
    /// Where all figures are written.
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
    /// The bare server.
    #[command(hide = true)]
    Floor(floor::Arguments),
}

/// How long each figure is measured.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    window: Duration,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.part {
        Some(Part::Floor(arguments)) => floor::serve(arguments).map(|()| true),
        None if cli.bench => run(&cli),
        None => {
            // `cargo test --all-targets` runs benchmarks without that flag.
            println!("skipped: needs `cargo xtask bench replicas`");
            return ExitCode::SUCCESS;
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench replicas: {error:#}");
            ExitCode::from(EXIT_NOT_MEASURED)
        }
    }
}

fn run(cli: &Cli) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            outcome = measured(cli) => outcome,
            // Dropping the subjects kills them.
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Into::into).and_then(|()| anyhow::bail!("interrupted")),
        }
    })
}

async fn measured(cli: &Cli) -> Result<bool> {
    let effort = if cli.quick {
        Effort { rounds: 2, window: Duration::from_secs(1) }
    } else {
        Effort { rounds: 7, window: Duration::from_secs(3) }
    };
    let mut report = Report::default();
    for (deployments, most_mib) in SIZES.into_iter().take(if cli.quick { 1 } else { 2 }) {
        let world = World::start(deployments).await?;
        let mut subjects = vec![subject::service(&world).await?];
        if !cli.no_go {
            match subject::go(&world).await {
                Ok(go) => subjects.push(go),
                Err(missing) => println!("the Go server is left out: skipped: needs {missing}"),
            }
        }
        println!("\n{deployments} deployments");
        for subject in &subjects {
            let mib = subject.resident_mib()?;
            println!("  {:<8} {mib:>8.1} MiB resident", subject.name);
            report.add(subject.name, &format!("residentMib{deployments}"), json!(mib));
        }
        let mib = subjects[0].resident_mib()?;
        report.require(format!("{deployments} deployments: below {most_mib} MiB ({mib:.1})"), mib < most_mib);
        if deployments == SIZES[0].0 {
            subjects.push(subject::floor(&world).await?);
            speed(&world, &subjects, effort, &mut report).await?;
        }
    }
    if let Some(path) = &cli.json {
        let text = serde_json::to_string_pretty(&report.figures)? + "\n";
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(report.finish())
}

/// Answers a second and their times, in turns, so that a slow moment hits all; handshakes; and reads while others write.
async fn speed(world: &World, subjects: &[Subject], effort: Effort, report: &mut Report) -> Result<()> {
    let mut rates = vec![Vec::new(); subjects.len()];
    let mut times = vec![Vec::new(); subjects.len()];
    for _ in 0..effort.rounds {
        for (index, subject) in subjects.iter().enumerate() {
            let caller = Caller::new(world, subject)?;
            let reading = caller.read(CONNECTIONS, effort.window).await?;
            rates[index].push(reading.per_second());
            times[index].push(reading.p99_us());
        }
    }
    println!("\n{CONNECTIONS} connections, one question after the other, median of {} rounds", effort.rounds);
    for (index, subject) in subjects.iter().enumerate() {
        let (rate, p99) = (median(&mut rates[index]), median(&mut times[index]));
        println!("  {:<8} {rate:>10.0}/s   p99 {p99:>8.0} us", subject.name);
        report.add(subject.name, "readsPerSecond", json!(rate));
        report.add(subject.name, "p99Us", json!(p99));
    }
    let share = median(&mut rates[0]) / median(&mut rates[subjects.len() - 1]) * 100.0;
    report.require(
        format!("reads: at least {OF_THE_FLOOR_PCT} % of the floor ({share:.0} %)"),
        share >= OF_THE_FLOOR_PCT,
    );

    println!("\nhandshakes with client certificates, by `openssl s_time -new`");
    for subject in subjects {
        match client::handshakes(world, subject, effort.window).await? {
            Some(per_second) => {
                println!("  {:<8} {per_second:>10.0}/s", subject.name);
                report.add(subject.name, "handshakesPerSecond", json!(per_second));
            }
            None => println!("  skipped: needs openssl"),
        }
    }

    println!("\nwhile {UPDATES_PER_SECOND} counts a second are written by others");
    for subject in &subjects[..subjects.len() - 1] {
        let writing = world.write(UPDATES_PER_SECOND);
        let caller = Caller::new(world, subject)?;
        let reading = caller.read(CONNECTIONS, effort.window).await?;
        let written = writing.stop().await?;
        let (rate, p99) = (reading.per_second(), reading.p99_us());
        println!("  {:<8} {rate:>10.0}/s   p99 {p99:>8.0} us   ({written:.0} writes/s)", subject.name);
        report.add(subject.name, "p99UsWhileWritten", json!(p99));
        report.add(subject.name, "writesPerSecond", json!(written));
    }
    Ok(())
}
