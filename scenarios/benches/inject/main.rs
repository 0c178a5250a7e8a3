//! What an injection costs: `cargo xtask bench inject`.
//!
//! First how fast chunks get into an API server, and how many bytes that takes, beside Zarf's scheme played by the benchmark itself; then how
//! fast the seed assembles what a kubelet has mounted, beside SHA-256 alone, and what memory it needs. Injector and seed are the released
//! programs; the mock API server runs in this process. Nothing here is timed by `cargo test`.

mod assembly;
mod forwarder;
mod payload;
#[path = "../replicas/report.rs"]
mod report;
mod sending;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;

use report::{Report, median};
use server::Server;

/// Nothing can be said; 1 is a requirement that is not met.
const EXIT_NOT_MEASURED: u8 = 2;
/// What is sent beside the payload: base64 is a third of it, the rest are names, digests, heads and TLS.
const OVERHEAD_PCT: f64 = 40.0;
/// Of SHA-256's own rate on one core, in percent.
const OF_SHA_PCT: f64 = 50.0;
/// From here on an assembly has a rate. Ten megabytes take a dozen milliseconds, and starting a process and touching its memory for the
/// first time are three of them: their figure is shown and not judged.
const RATED_MB: usize = 200;
/// The seed's peak, in megabytes.
const PEAK_MB: f64 = 6.0;

/// Measures injector and seed. Exit 0 when every requirement is met, 1 when not, 2 when it could not be measured.
#[derive(Parser)]
#[command(name = "cargo xtask bench inject")]
struct Cli {
    /// Three rounds with 32 MB into the API servers, and payloads of 10 and 200 MB for the seed.
    #[arg(long)]
    quick: bool,
    /// Where all figures are written.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What `cargo bench` says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// How much is measured how often.
struct Effort {
    rounds: usize,
    /// Into the API servers. A real one's etcd takes 2 GiB, and what was deleted counts until it is compacted.
    sent_mb: usize,
    assembled_mb: &'static [usize],
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if !cli.bench {
        // `cargo test --all-targets` runs benchmarks without that flag.
        println!("skipped: needs `cargo xtask bench inject`");
        return ExitCode::SUCCESS;
    }
    match run(&cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench inject: {error:#}");
            ExitCode::from(EXIT_NOT_MEASURED)
        }
    }
}

fn run(cli: &Cli) -> Result<bool> {
    let effort = if cli.quick {
        Effort { rounds: 3, sent_mb: 32, assembled_mb: &[10, 200] }
    } else {
        Effort { rounds: 5, sent_mb: 96, assembled_mb: &[10, 200, 1000] }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut report = Report::default();
    runtime.block_on(async {
        tokio::select! {
            outcome = measured(&effort, &mut report) => outcome,
            // Dropping the servers and processes ends them.
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Into::into).and_then(|()| anyhow::bail!("interrupted")),
        }
    })?;
    if let Some(path) = &cli.json {
        let text = serde_json::to_string_pretty(&report.figures)? + "\n";
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(report.finish())
}

async fn measured(effort: &Effort, report: &mut Report) -> Result<()> {
    let mut servers = vec![Server::mock().await?];
    match std::env::var_os("KUBEBUILDER_ASSETS") {
        Some(assets) => servers.push(Server::real(assets.into()).await?),
        None => println!("the real API server is left out: skipped: needs KUBEBUILDER_ASSETS"),
    }
    for server in &servers {
        sent(server, effort, report).await?;
    }
    drop(servers);
    for megabytes in effort.assembled_mb {
        assembled(*megabytes, effort.rounds, report).await?;
    }
    Ok(())
}

/// The injector and Zarf's scheme in turns, so that a slow moment hits both.
async fn sent(server: &Server, effort: &Effort, report: &mut Report) -> Result<()> {
    let stage = sending::Stage::start(server, effort.sent_mb).await?;
    let (mut ours, mut zarf) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(stage.inject().await?);
        zarf.push(stage.zarf().await?);
    }
    println!("\n{} MB into {}, median of {} rounds", effort.sent_mb, server.about, effort.rounds);
    let of = |sent: &[sending::Sent], value: fn(&sending::Sent) -> f64| {
        median(&mut sent.iter().map(value).collect::<Vec<_>>())
    };
    for (name, sent) in [("inject", &ours), ("zarf", &zarf)] {
        let rate = of(sent, sending::Sent::mb_per_second);
        let (requests, up, down) = (
            of(sent, sending::Sent::requests_per_mb),
            of(sent, sending::Sent::up_per_byte),
            of(sent, sending::Sent::down_per_byte),
        );
        println!(
            "  {name:<8} {rate:>8.1} MB/s   {requests:>6.2} requests, {up:>6.3} MB sent and {down:>6.3} MB received for each MB"
        );
        for (figure, value) in
            [("MbPerSecond", rate), ("RequestsPerMb", requests), ("SentPerByte", up), ("ReceivedPerByte", down)]
        {
            report.add(server.name, &format!("{name}{figure}"), json!(value));
        }
    }
    let paused = of(&zarf, sending::Sent::mb_per_second_with_pauses);
    println!("  {:<8} {paused:>8.1} MB/s with the pause of 250 ms that it makes after each chunk (reckoned)", "zarf");
    report.add(server.name, "zarfWithPausesMbPerSecond", json!(paused));
    let clean = of(&ours, |sent| sent.clean.as_secs_f64());
    println!(
        "  `inject clean` {clean:.2} s; the whole of `inject apply` but the kubelet {:.2} s",
        of(&ours, |sent| sent.whole.as_secs_f64())
    );
    report.add(server.name, "cleanSeconds", json!(clean));
    let overhead = (of(&ours, sending::Sent::up_per_byte) - 1.0) * 100.0;
    report.require(
        format!("{}: less than {OVERHEAD_PCT} % beside the payload ({overhead:.1} %)", server.name),
        overhead < OVERHEAD_PCT,
    );
    Ok(())
}

/// The seed and SHA-256 alone in turns.
async fn assembled(megabytes: usize, rounds: usize, report: &mut Report) -> Result<()> {
    let mounted = payload::Payload::mount(megabytes)?;
    let (mut rates, mut shares, mut peaks, mut sha) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let own = assembly::sha_mb_per_second();
        let seed = assembly::assemble(&mounted).await?;
        shares.push(seed.mb_per_second / own * 100.0);
        rates.push(seed.mb_per_second);
        peaks.push(seed.peak_mb);
        sha.push(own);
    }
    let (rate, share) = (median(&mut rates), median(&mut shares));
    let peak = peaks.iter().copied().fold(0.0, f64::max);
    let sha = median(&mut sha);
    println!("\n{megabytes} MB assembled, median of {rounds} rounds");
    println!("  seed {rate:>8.1} MB/s   SHA-256 alone {sha:>8.1} MB/s   {share:.0} %   peak {peak:.2} MB");
    for (figure, value) in [("mbPerSecond", rate), ("ofShaPct", share), ("peakMb", peak), ("shaMbPerSecond", sha)] {
        report.add("seed", &format!("{figure}{megabytes}"), json!(value));
    }
    if megabytes >= RATED_MB {
        report.require(
            format!("{megabytes} MB: at least {OF_SHA_PCT} % of SHA-256's rate ({share:.0} %)"),
            share >= OF_SHA_PCT,
        );
    }
    report.require(format!("{megabytes} MB: the seed needs less than {PEAK_MB} MB ({peak:.2})"), peak < PEAK_MB);
    Ok(())
}
