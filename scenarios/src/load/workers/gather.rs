//! Where workers come from: started here, listening elsewhere, or connecting to us.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::Instant;
use units::Span;

use super::greet::{Refusals, greet_process, greet_stranger};
use super::peer::{HELLO_LIMIT, Worker};
use super::token::Token;

/// Connections that are greeted at once while workers are waited for; others wait their turn in the system's queue.
pub(crate) const GREETINGS_MAX: usize = 128;

/// Workers that have been greeted.
pub(crate) struct Workers(pub(super) Vec<Worker>);

impl Workers {
    /// Starts so many processes of this program on this machine.
    pub(crate) async fn fork(count: u32) -> Result<Self> {
        let program = std::env::current_exe().context("failed to find this program")?;
        let mut workers = Vec::new();
        for number in 0..count {
            let mut command = Command::new(&program);
            // A group of its own: Ctrl-C on a terminal is ours to pass on.
            command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).kill_on_drop(true);
            let child = command.spawn().with_context(|| format!("failed to start worker {number}"))?;
            workers.push(Worker::process(number, child)?);
        }
        for worker in &mut workers {
            greet_process(worker).await?;
        }
        Ok(Self(workers))
    }

    /// Connects to workers that listen (`longhaul worker --listen`).
    pub(crate) async fn connect(addresses: &[SocketAddr], token: &Token) -> Result<Self> {
        let mut workers = Vec::new();
        for (number, address) in addresses.iter().enumerate() {
            let tcp = tokio::time::timeout(HELLO_LIMIT, TcpStream::connect(address));
            let tcp = tcp.await.map_err(anyhow::Error::from).and_then(|connected| Ok(connected?));
            let tcp = tcp.with_context(|| {
                format!("no worker listens at {address}: start `longhaul worker --listen {address}` there first")
            })?;
            let mut worker = Worker::stranger(format!("worker {number} ({address})"), tcp)?;
            greet_stranger(&mut worker, token).await?;
            workers.push(worker);
        }
        Ok(Self(workers))
    }

    /// Waits until so many workers have connected (`longhaul worker --connect`). Who does not know the token is sent away and
    /// does not keep the others waiting.
    pub(crate) async fn listen(address: SocketAddr, count: u32, wait: Span, token: Token) -> Result<Self> {
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("--listen: failed to listen at {address}"))?;
        let address = listener.local_addr()?;
        crate::out::err!("longhaul: waiting up to {wait} for {count} workers at {address}");
        let (token, until) = (Arc::new(token), Instant::now() + wait.0);
        let (mut workers, mut greetings, mut refusals) = (Vec::new(), JoinSet::new(), Refusals::default());
        while workers.len() < count as usize {
            tokio::select! {
                accepted = listener.accept(), if greetings.len() < GREETINGS_MAX => {
                    let (tcp, from) = match accepted {
                        Ok(accepted) => accepted,
                        Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => continue,
                        Err(error) => return Err(error).context("--listen: failed to accept a worker"),
                    };
                    let token = Arc::clone(&token);
                    greetings.spawn(async move {
                        let mut worker = Worker::stranger(from.to_string(), tcp)?;
                        greet_stranger(&mut worker, &token).await.map(|()| worker)
                    });
                }
                Some(greeted) = greetings.join_next() => match greeted.context("a greeting failed")? {
                    Ok(mut worker) => {
                        worker.ear.name = format!("worker {} ({})", workers.len(), worker.name());
                        workers.push(worker);
                    }
                    Err(why) => refusals.note(format!("{why:#}")),
                },
                () = tokio::time::sleep_until(until) => bail!(
                    "{} of {count} workers came within {wait}: start `longhaul worker --connect` with this address and the same \
                     token on every machine, or give --wait more time{}",
                    if workers.is_empty() { "none".to_owned() } else { format!("only {}", workers.len()) },
                    refusals.describe()
                ),
            }
        }
        Ok(Self(workers))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Connects to a coordinator that waits, or will do so within this time: workers may be started first.
pub(crate) async fn reach(coordinator: &str, wait: Span) -> Result<TcpStream> {
    const AGAIN: Duration = Duration::from_millis(250);
    let until = Instant::now() + wait.0;
    let try_once = async {
        loop {
            match TcpStream::connect(coordinator).await {
                Ok(tcp) => return Ok(tcp),
                // A name that cannot be resolved may be one of a Service that is being made.
                Err(error) if Instant::now() + AGAIN >= until => return Err(error),
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    };
    let reached = tokio::time::timeout_at(until + AGAIN, try_once).await.map_err(anyhow::Error::from);
    reached.and_then(|reached| Ok(reached?)).with_context(|| {
        format!("no coordinator waits at {coordinator} within {wait}: start `longhaul load --listen` there, or correct the address")
    })
}
