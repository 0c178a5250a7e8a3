//! `cargo xtask bench replicas`: the cost of the API that scales Deployments, compared with the least cost of any
//! server.
//!
//! The benchmark measures three servers that answer the same request over TLS 1.3 with client certificates. The first
//! server is the service, and the second a plain hyper server that answers a constant. The third server needs a Go
//! toolchain: a minimal Go server with client-go's informer and net/http (`go/main.go`). Each server is a separate
//! process; the benchmark's process is the API server and the client of all three servers.

mod client;
mod subject;
mod world;

use std::time::Duration;

use anyhow::Result;

use crate::kit::report::{Report, Samples, median};
use client::Caller;
use subject::Subject;
use world::World;

/// Number of connections, each of which sends one request after the other.
const CONNECTIONS: usize = 16;
/// Required answers per second of the service, in percent of the plain server's answers per second.
const OF_THE_FLOOR_PCT: f64 = 80.0;
/// Each measurement: number of Deployments, and the service's allowed resident memory in MiB with these Deployments.
const SIZES: [(u32, f64); 2] = [(10_000, 20.0), (100_000, 120.0)];
/// Writes per second by other clients while replica counts are read.
const UPDATES_PER_SECOND: u32 = 1000;

/// Measures the service's API that scales Deployments. Exit code: 0 if every requirement is met, 1 if one is not, 2 if
/// one could not be measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Skip the Go server.
    #[arg(long)]
    no_go: bool,
}

/// Duration of each measurement.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    window: Duration,
}

/// Runs all measurements.
pub(crate) async fn measure(arguments: &Arguments, quick: bool, report: &mut Report) -> Result<()> {
    let effort = if quick {
        Effort { rounds: 2, window: Duration::from_secs(1) }
    } else {
        Effort { rounds: 7, window: Duration::from_secs(3) }
    };
    for (deployments, most_mib) in SIZES.into_iter().take(if quick { 1 } else { 2 }) {
        let world = World::start(deployments).await?;
        let mut subjects = vec![subject::service(&world).await?];
        if !arguments.no_go {
            match subject::go(&world).await {
                Ok(go) => subjects.push(go),
                Err(missing) => println!("the Go server is left out: skipped: needs {missing}"),
            }
        }
        println!("\n{deployments} deployments");
        for subject in &subjects {
            let mib = subject.running.measured.rss_mib()?;
            println!("  {:<8} {mib:>8.1} MiB resident", subject.name);
            report.add(&format!("{}.residentMib{deployments}", subject.name), mib);
        }
        let mib = subjects[0].running.measured.rss_mib()?;
        report.require(format!("{deployments} deployments: below {most_mib} MiB ({mib:.1})"), mib < most_mib);
        if deployments == SIZES[0].0 {
            subjects.push(subject::floor(&world).await?);
            speed(&world, &subjects, effort, report).await?;
        }
    }
    Ok(())
}

/// Measures answers per second and answer times of all servers, one after the other. Also measures TLS handshakes, and
/// reads while other clients write.
async fn speed(world: &World, subjects: &[Subject], effort: Effort, report: &mut Report) -> Result<()> {
    let mut samples = Samples::none();
    for _ in 0..effort.rounds {
        for subject in subjects {
            let reading = Caller::new(world, subject.address)?.read(CONNECTIONS, effort.window).await?;
            samples.add((subject.name, "readsPerSecond"), reading.per_second());
            samples.add((subject.name, "p99Us"), reading.p99_us());
        }
    }
    println!("\n{CONNECTIONS} connections, one question after the other, median of {} rounds", effort.rounds);
    for subject in subjects {
        let [rate, p99] = ["readsPerSecond", "p99Us"].map(|figure| samples.median(&(subject.name, figure)));
        println!("  {:<8} {rate:>10.0}/s   p99 {p99:>8.0} us", subject.name);
    }
    for (subject, figure) in samples.known() {
        report.add(&format!("{subject}.{figure}"), samples.median(&(*subject, *figure)));
    }
    let [service, floor] = ["service", "floor"].map(|name| samples.of(&(name, "readsPerSecond")));
    // Comparisons are made within a round, because that is the same moment of the machine.
    let share = median(&service.iter().zip(floor).map(|(service, floor)| service / floor * 100.0).collect::<Vec<_>>());
    report.require(
        format!("reads: at least {OF_THE_FLOOR_PCT} % of the floor ({share:.0} %)"),
        share >= OF_THE_FLOOR_PCT,
    );

    println!("\nhandshakes with client certificates, by `openssl s_time -new`");
    for subject in subjects {
        match client::handshakes(world, subject.address, effort.window).await? {
            Some(per_second) => {
                println!("  {:<8} {per_second:>10.0}/s", subject.name);
                report.add(&format!("{}.handshakesPerSecond", subject.name), per_second);
            }
            None => println!("  skipped: needs openssl"),
        }
    }

    println!("\nwhile {UPDATES_PER_SECOND} counts a second are written by others");
    for subject in &subjects[..subjects.len() - 1] {
        let writing = world.write(UPDATES_PER_SECOND);
        let reading = Caller::new(world, subject.address)?.read(CONNECTIONS, effort.window).await?;
        let written = writing.stop().await?;
        let (rate, p99) = (reading.per_second(), reading.p99_us());
        println!("  {:<8} {rate:>10.0}/s   p99 {p99:>8.0} us   ({written:.0} writes/s)", subject.name);
        report.add(&format!("{}.p99UsWhileWritten", subject.name), p99);
        report.add(&format!("{}.writesPerSecond", subject.name), written);
    }
    Ok(())
}
