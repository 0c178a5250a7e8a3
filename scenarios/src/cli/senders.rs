//! The flags that say which processes send: this one, others that it starts, or others elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use loadgen::admission::Plan;
use units::Span;

use crate::load::Job;
use crate::load::measure::{self, Measured, Watch};
use crate::load::workers::token::Token;
use crate::load::workers::{self, WAIT_MAX, WORKERS_MAX, Workers};

/// Which processes send.
#[derive(clap::Args)]
pub(super) struct Senders {
    /// Send with so many processes on this machine, each with its share of the plan.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(WORKERS_MAX)))]
    workers: Option<u32>,
    /// Send with workers that listen elsewhere (`longhaul worker --listen`), each with its share of the plan.
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',', conflicts_with = "workers")]
    worker_at: Vec<SocketAddr>,
    /// Start no workers, but wait here until as many as --workers says have connected (`longhaul worker --connect`).
    #[arg(long, value_name = "ADDRESS", requires = "workers")]
    listen: Option<SocketAddr>,
    /// A file with the token that workers elsewhere must know. Without it the variable `LONGHAUL_WORKER_TOKEN` is read.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// How long to wait for the workers of --listen.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = wait)]
    wait: Span,
}

/// The same, checked and with the token read.
pub(super) enum Source<'a> {
    Here,
    Started(u32),
    Listening(&'a [SocketAddr], Token),
    Coming { address: SocketAddr, count: u32, wait: Span, token: Token },
}

impl Senders {
    /// Refuses what can be known to be wrong before anything is sent.
    pub(super) fn check(&self) -> Result<Source<'_>> {
        let token = || Token::read(self.token_file.as_deref());
        let elsewhere = self.worker_at.len();
        ensure!(
            elsewhere <= WORKERS_MAX as usize,
            "--worker-at has {elsewhere} addresses: at most {WORKERS_MAX} workers send one plan"
        );
        Ok(match (self.workers, self.listen) {
            _ if elsewhere > 0 => Source::Listening(&self.worker_at, token()?),
            (None, _) => Source::Here,
            (Some(count), None) => Source::Started(count),
            (Some(count), Some(address)) => Source::Coming { address, count, wait: self.wait, token: token()? },
        })
    }
}

impl Source<'_> {
    /// Starts or finds the workers. `None`: this process sends.
    pub(super) async fn open(self) -> Result<Option<Workers>> {
        Ok(Some(match self {
            Self::Here => return Ok(None),
            Self::Started(count) => Workers::fork(count).await?,
            Self::Listening(addresses, token) => Workers::connect(addresses, &token).await?,
            Self::Coming { address, count, wait, token } => Workers::listen(address, count, wait, token).await?,
        }))
    }
}

/// Sends the plan with these workers, or with this process.
pub(super) async fn measure(
    job: &Job,
    plan: Plan,
    workers: Option<&mut Workers>,
    watch: &mut Watch,
) -> Result<Measured> {
    match workers {
        None => measure::measure(job, plan, watch).await,
        Some(workers) => workers::measure(job, &plan, workers, watch).await,
    }
}

/// A time that somebody may be waited for.
pub(super) fn wait(text: &str) -> Result<Span, String> {
    let wait: Span = text.parse().map_err(|error: units::Error| error.to_string())?;
    if wait.0.is_zero() || wait.0 > WAIT_MAX {
        return Err(format!("{wait} is no time to wait: write 1s to {}", Span(WAIT_MAX)));
    }
    Ok(wait)
}
