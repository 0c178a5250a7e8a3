//! `cargo xtask bench admission`: the cost of the service's webhook, compared with the least cost of any webhook.
//!
//! Each webhook is a separate process on a processor of its own. The benchmark's process is the client and the image
//! registry of all webhooks, and sends all of them the same bytes.

mod digester;
mod measure;
mod memory;
mod subject;
mod verify;

use std::time::Duration;

use anyhow::Result;

use crate::kit::cores::Cores;
use crate::kit::report::Report;
use measure::Effort;

const FULL: Effort = Effort { rounds: 7, window: Duration::from_secs(3), paced: Duration::from_secs(20) };
const QUICK: Effort = Effort { rounds: 2, window: Duration::from_secs(1), paced: Duration::from_secs(5) };

/// Measures the service's webhook, and for comparison a plain hyper server that reads the body and answers a constant.
/// If a Go toolchain is installed, k8s-digester's webhook is measured as well. Default: everything except `--verify`,
/// about five minutes. Exit code: 0 if every requirement is met, 1 if one is not, 2 if one could not be measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Measure only speed or only memory.
    #[arg(long, value_name = "WHAT")]
    only: Option<Measurement>,
    /// Measure instead the cost of verifying signatures, compared with `cosign verify` if cosign is installed.
    #[arg(long, conflicts_with = "only")]
    verify: bool,
    /// Do not measure k8s-digester.
    #[arg(long)]
    no_digester: bool,
}

/// A measurement that can run alone.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Measurement {
    /// Throughput, CPU time and latency.
    Speed,
    /// Memory with 100 and with 1,000 connections.
    Memory,
}

/// Runs all requested measurements.
pub(crate) async fn measure(arguments: &Arguments, quick: bool, cores: &Cores, report: &mut Report) -> Result<()> {
    scenarios::descriptors::raise(memory::DESCRIPTORS)?;
    let effort = if quick { QUICK } else { FULL };
    let world = subject::World::start(cores).await?;
    println!("{}", cores.describe());
    if arguments.verify {
        return verify::measure(&world, cores, effort, report).await;
    }
    let mut subjects = vec![subject::floor(&world, cores).await?, subject::service(&world, cores).await?];
    if !arguments.no_digester && arguments.only != Some(Measurement::Memory) {
        match digester::start(&world, cores).await {
            Ok(digester) => subjects.push(digester),
            Err(missing) => println!("k8s-digester is left out: skipped: needs {missing}"),
        }
    }
    if arguments.only != Some(Measurement::Memory) {
        measure::speed(&world, &subjects, effort, report).await?;
    }
    if arguments.only != Some(Measurement::Speed) {
        memory::measure(&world, &subjects[..2], report).await?;
    }
    Ok(())
}
