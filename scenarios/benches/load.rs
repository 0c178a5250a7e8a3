//! `cargo xtask bench load`: compares Longhaul's load generator with wrk, h2load, hey, ab and oha.
//!
//! The called hyper TLS server and every load generator are separate processes. The CPU time of a load generator is the
//! kernel's count for ended child processes.

mod honesty;
pub(crate) mod ours;
mod output;
mod server;
mod speed;
mod tools;

use anyhow::Result;

use crate::kit::report::Report;

/// Measures Longhaul's load generator, and for comparison those of wrk, h2load, hey, ab and oha that are installed.
/// Default: speed, honesty and lateness, about five minutes. Exit code: 0 if every requirement is met, 1 if one is not,
/// 2 if one could not be measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Measure only the highest rates and the CPU time of a request.
    #[arg(long)]
    speed: bool,
    /// Measure only the latencies reported for a server that freezes, and the lateness of requests.
    #[arg(long)]
    honesty: bool,
    /// Measure only memory after one million and after ten million requests. This measurement takes ten minutes or
    /// more.
    #[arg(long)]
    memory: bool,
}

/// Runs all requested measurements.
pub(crate) async fn measure(arguments: &Arguments, quick: bool, report: &mut Report) -> Result<()> {
    let everything = !(arguments.speed || arguments.honesty || arguments.memory);
    let server = server::Server::start().await?;
    let body = ours::body()?;
    println!(
        "server: hyper and rustls in a process of its own; every request is a POST of {} bytes over TLS\n",
        body.len()
    );
    let tools = tools::Tools::find(&body)?;
    if arguments.speed || everything {
        speed::measure(&server, &tools, quick, report)?;
    }
    if arguments.honesty || everything {
        honesty::lateness(&server, quick, report)?;
        honesty::measure(&server, &tools, quick, report)?;
    }
    if arguments.memory {
        speed::memory(&server, report)?;
    }
    Ok(())
}
