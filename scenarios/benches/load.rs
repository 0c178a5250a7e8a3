//! Our load generator beside well-known ones: `cargo xtask bench load`.
//!
//! Owns the order. One hyper TLS server and every generator, ours as well, are separate processes. The cost of a
//! generator comes from the kernel's account of ended children.

mod honesty;
pub(crate) mod ours;
mod output;
mod server;
mod speed;
mod tools;

use anyhow::Result;

use crate::kit::report::Report;

/// Measures the load generator beside wrk, h2load, hey, ab and oha, those of them that are installed. Without a choice:
/// speed, honesty and lateness, about five minutes. Exit 0 when every requirement is met, 1 when not, 2 when it could not be
/// measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the highest rates and the CPU time of a request.
    #[arg(long)]
    speed: bool,
    /// Only what is reported of a server that freezes, and how late requests are.
    #[arg(long)]
    honesty: bool,
    /// Only memory after one and after ten million requests; ten minutes or more.
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
