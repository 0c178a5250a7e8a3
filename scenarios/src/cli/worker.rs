//! `longhaul worker`: one of several processes that send one plan. Not for people: `longhaul load --workers N` starts it.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, TcpStream};

use crate::load::workers::worker::work;

/// Arguments of `longhaul worker`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Wait here for a coordinator (`longhaul load --worker-at`) instead of working for whoever started the process. Whoever can
    /// connect can have load sent anywhere: listen where only friends are.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Connect to a coordinator that waits.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "listen")]
    connect: Option<SocketAddr>,
}

/// Works once, then ends.
pub(super) fn worker(arguments: &Arguments) -> ExitCode {
    let result = super::runtime().and_then(|runtime| {
        let result = runtime.block_on(run(arguments));
        // Nothing of finished work may keep the process alive.
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(()) => ExitCode::from(reports::exit::PASS),
        Err(error) => super::fail(reports::exit::INVALID, &error),
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    let tcp = match (arguments.listen, arguments.connect) {
        (Some(address), _) => {
            let listener =
                TcpListener::bind(address).await.with_context(|| format!("failed to listen at {address}"))?;
            eprintln!("longhaul: waiting for a coordinator at {}", listener.local_addr()?);
            Some(listener.accept().await.context("failed to accept a coordinator")?.0)
        }
        (None, Some(address)) => {
            Some(TcpStream::connect(address).await.with_context(|| format!("failed to connect to {address}"))?)
        }
        (None, None) => None,
    };
    let worked = if let Some(tcp) = tcp {
        // Pings measure the clock.
        tcp.set_nodelay(true)?;
        let (input, output) = tcp.into_split();
        work(input, output).await
    } else {
        let (input, output) = pipes().context(
            "a worker talks over the pipes of the process that started it: use `longhaul load --workers N`, or --listen",
        )?;
        work(input, output).await
    };
    worked.map_err(anyhow::Error::msg)
}

/// Stdin and stdout, if they are pipes: only those can be read without a thread that nobody can end.
fn pipes() -> std::io::Result<(pipe::Receiver, pipe::Sender)> {
    let input = pipe::Receiver::from_owned_fd(std::io::stdin().as_fd().try_clone_to_owned()?)?;
    let output = pipe::Sender::from_owned_fd(std::io::stdout().as_fd().try_clone_to_owned()?)?;
    Ok((input, output))
}
