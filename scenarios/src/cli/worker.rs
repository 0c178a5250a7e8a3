//! `longhaul worker`: one of several processes that send one plan. Not for people: `longhaul load --workers N` starts it.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use reports::exit;
use tokio::net::TcpListener;
use tokio::net::unix::pipe;
use tokio::task::JoinSet;

use super::senders::wait;
use crate::load::workers::gather::{GREETINGS_MAX, reach};
use crate::load::workers::greet::Refusals;
use crate::load::workers::token::Token;
use crate::load::workers::worker::{OverTcp, greet_coordinator, greet_parent, work};

/// Arguments of `longhaul worker`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Wait here for a coordinator (`longhaul load --worker-at`) instead of working for whoever started the process. It must know
    /// the token.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Connect to a coordinator that waits (`longhaul load --listen`) and knows the token.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "listen")]
    connect: Option<String>,
    /// The token of --listen and --connect. Without it the variable `LONGHAUL_WORKER_TOKEN` is read.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// How long to try to reach the coordinator of --connect.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = wait)]
    wait: units::Span,
}

/// Works for one coordinator, then ends.
pub(super) fn worker(arguments: &Arguments) -> u8 {
    let Err(error) = super::block_on(run(arguments)) else { return exit::PASS };
    crate::out::err!("longhaul: {error:#}");
    exit::INVALID
}

async fn run(arguments: &Arguments) -> Result<()> {
    let token = || Token::read(arguments.token_file.as_deref());
    let worked = if let Some(address) = arguments.listen {
        work(accepted(address, token()?).await?).await
    } else if let Some(coordinator) = &arguments.connect {
        let token = token()?;
        let tcp = reach(coordinator, arguments.wait).await?;
        let greeted = greet_coordinator(tcp, &token).await;
        work(greeted.map_err(|why| anyhow::anyhow!("the coordinator at {coordinator} {why}"))?).await
    } else {
        let (input, output) = pipes().context(
            "a worker talks over the pipes of the process that started it: use `longhaul load --workers N`, or --listen",
        )?;
        work(greet_parent(input, output).await.map_err(anyhow::Error::msg)?).await
    };
    worked.map_err(anyhow::Error::msg)
}

/// The first who connects and knows the token. All who connect are greeted at once, so that nobody keeps the coordinator waiting.
async fn accepted(address: SocketAddr, token: Token) -> Result<OverTcp> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("failed to listen at {address}"))?;
    crate::out::err!("longhaul: waiting for a coordinator at {}", listener.local_addr()?);
    let (token, mut greetings, mut refusals) = (Arc::new(token), JoinSet::new(), Refusals::default());
    loop {
        tokio::select! {
            accepted = listener.accept(), if greetings.len() < GREETINGS_MAX => {
                let (tcp, from) = match accepted {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => continue,
                    Err(error) => return Err(error).context("failed to accept a coordinator"),
                };
                let token = Arc::clone(&token);
                greetings.spawn(async move {
                    greet_coordinator(tcp, &token).await.map_err(|why| format!("{from} {why}"))
                });
            }
            Some(greeted) = greetings.join_next() => match greeted.context("a greeting failed")? {
                Ok(greeted) => return Ok(greeted),
                Err(why) => refusals.note(why),
            },
        }
    }
}

/// Stdin and stdout, if they are pipes: only those can be read without a thread that nobody can end.
fn pipes() -> std::io::Result<(pipe::Receiver, pipe::Sender)> {
    let input = pipe::Receiver::from_owned_fd(std::io::stdin().as_fd().try_clone_to_owned()?)?;
    let output = pipe::Sender::from_owned_fd(std::io::stdout().as_fd().try_clone_to_owned()?)?;
    Ok((input, output))
}
