//! The cost of an injection: `cargo xtask bench inject`.
//!
//! The first measurement is the rate, and the number of bytes, of sending chunks into an API server. For comparison,
//! the benchmark itself also sends chunks by Zarf's method. The second measurement is the memory of the injected
//! program, and its rate of assembling mounted chunks, compared with SHA-256 alone. Injector and injected program are
//! the released programs; the mock API server runs in the benchmark's process.

mod assembly;
mod forwarder;
mod payload;
mod sending;

use anyhow::Result;

use crate::kit::apiserver::ApiServer;
use crate::kit::report::{Report, Samples, median};

/// Limit of the bytes that are sent in addition to the payload, in percent of the payload's size. Base64 adds a third
/// to the payload; the rest are names, digests, HTTP heads and TLS.
const OVERHEAD_PCT: f64 = 40.0;
/// Required rate of an assembly, in percent of the rate of SHA-256 alone on one core.
const OF_SHA_PCT: f64 = 50.0;
/// Smallest size in megabytes for which the rate is a requirement. An assembly of 10 MB takes about 12 ms, of which 3
/// ms start the process and touch its memory for the first time. Rates of smaller sizes are therefore only shown.
const RATED_MB: usize = 200;
/// Allowed peak memory of the injected program, in megabytes.
const PEAK_MB: f64 = 6.0;

/// Measures the injector and the injected program. Exit code: 0 if every requirement is met, 1 if one is not, 2 if one
/// could not be measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Sizes of the payloads, and number of rounds.
struct Effort {
    rounds: usize,
    /// Size in megabytes of the payload that is sent to the API servers. The etcd of a real API server holds 2 GiB, and
    /// deleted objects count until etcd is compacted.
    sent_mb: usize,
    assembled_mb: &'static [usize],
}

/// Runs all measurements.
pub(crate) async fn measure(quick: bool, report: &mut Report) -> Result<()> {
    let effort = if quick {
        Effort { rounds: 3, sent_mb: 32, assembled_mb: &[10, 200] }
    } else {
        Effort { rounds: 5, sent_mb: 96, assembled_mb: &[10, 200, 1000] }
    };
    let mut servers = vec![ApiServer::here().await?];
    servers.extend(ApiServer::real().await?);
    for server in &servers {
        sent(server, &effort, report).await?;
    }
    drop(servers);
    for megabytes in effort.assembled_mb {
        assembled(*megabytes, effort.rounds, report).await?;
    }
    Ok(())
}

/// Sends alternately with the injector and by Zarf's method, so that a slow moment of the machine affects both.
async fn sent(server: &ApiServer, effort: &Effort, report: &mut Report) -> Result<()> {
    let stage = sending::Stage::start(server, effort.sent_mb).await?;
    let (mut ours, mut zarf) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(stage.inject().await?);
        zarf.push(stage.zarf().await?);
    }
    println!("\n{} MB into {}, median of {} rounds", effort.sent_mb, server.about, effort.rounds);
    let of =
        |sent: &[sending::Sent], value: fn(&sending::Sent) -> f64| median(&sent.iter().map(value).collect::<Vec<_>>());
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
            report.add(&format!("{}.{name}{figure}", server.name), value);
        }
    }
    let paused = of(&zarf, sending::Sent::mb_per_second_with_pauses);
    println!("  {:<8} {paused:>8.1} MB/s with the pause of 250 ms that it makes after each chunk (reckoned)", "zarf");
    report.add(&format!("{}.zarfWithPausesMbPerSecond", server.name), paused);
    let clean = of(&ours, |sent| sent.clean.as_secs_f64());
    println!(
        "  `inject clean` {clean:.2} s; the whole of `inject apply` but the kubelet {:.2} s",
        of(&ours, |sent| sent.whole.as_secs_f64())
    );
    report.add(&format!("{}.cleanSeconds", server.name), clean);
    let overhead = (of(&ours, sending::Sent::up_per_byte) - 1.0) * 100.0;
    report.require(
        format!("{}: less than {OVERHEAD_PCT} % beside the payload ({overhead:.1} %)", server.name),
        overhead < OVERHEAD_PCT,
    );
    Ok(())
}

/// Alternates between assembling with the injected program and computing SHA-256 alone.
async fn assembled(megabytes: usize, rounds: usize, report: &mut Report) -> Result<()> {
    let mounted = payload::Payload::mount(megabytes)?;
    let mut samples = Samples::none();
    for _ in 0..rounds {
        let own = assembly::sha_mb_per_second();
        let seed = assembly::assemble(&mounted).await?;
        samples.add("ofShaPct", seed.mb_per_second / own * 100.0);
        samples.add("mbPerSecond", seed.mb_per_second);
        samples.add("peakMb", seed.peak_mb);
        samples.add("shaMbPerSecond", own);
    }
    let [rate, share, sha] = ["mbPerSecond", "ofShaPct", "shaMbPerSecond"].map(|figure| samples.median(&figure));
    let peak = samples.of(&"peakMb").iter().copied().fold(0.0, f64::max);
    println!("\n{megabytes} MB assembled, median of {rounds} rounds");
    println!("  seed {rate:>8.1} MB/s   SHA-256 alone {sha:>8.1} MB/s   {share:.0} %   peak {peak:.2} MB");
    for (figure, value) in [("mbPerSecond", rate), ("ofShaPct", share), ("peakMb", peak), ("shaMbPerSecond", sha)] {
        report.add(&format!("seed.{figure}{megabytes}"), value);
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
