//! The first words of a connection: both sides speak the same version, and over a network both know the token.
//!
//! Owns both sides of the greeting, so that they can be read together. Until it is over a peer may say little and take little
//! time.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::io::{AsyncRead, AsyncWrite};

use super::lines::{self, Reading, write};
use super::peer::{HELLO_LIMIT, Worker};
use super::protocol::{Order, PROTOCOL, Word, cut};
use super::token::{NoRandomness, Nonces, Side, Token, is_nonce, nonce};

/// A peer over a network has a round trip or two to make. Strangers may not keep others waiting.
const GREETING_LIMIT: Duration = Duration::from_secs(10);
/// Refusals that are told one by one; a port scan may make thousands.
const REFUSALS_TOLD: u32 = 5;

/// Hears the hello of a process of ours.
pub(super) async fn greet_process(worker: &mut Worker) -> Result<()> {
    match worker.hear(HELLO_LIMIT).await? {
        Word::Hello { protocol, version, .. } => same_version(worker.name(), &protocol, &version),
        other => Err(worker.unexpected(&other, "hello")),
    }
}

/// Hears the hello of somebody at the other end of a connection, proves to know the token and wants the same proof.
pub(super) async fn greet_stranger(worker: &mut Worker, token: &Token) -> Result<()> {
    let theirs = match worker.hear(GREETING_LIMIT).await? {
        Word::Hello { protocol, version, nonce } => {
            same_version(worker.name(), &protocol, &version)?;
            nonce.filter(|nonce| is_nonce(nonce))
        }
        other => return Err(worker.unexpected(&other, "hello")),
    };
    let Some(theirs) = theirs else { bail!("{} said hello without a nonce, as over pipes", worker.name()) };
    let ours = nonce()?;
    let nonces = Nonces { worker: &theirs, coordinator: &ours };
    let proof = token.prove(Side::Coordinator, nonces);
    worker.say(&Order::Challenge { nonce: ours.clone(), proof }).await?;
    match worker.hear(GREETING_LIMIT).await? {
        Word::Proof { proof } if token.proves(Side::Worker, nonces, &proof) => {}
        Word::Proof { .. } => bail!("{} does not know the token", worker.name()),
        other => return Err(worker.unexpected(&other, "proof")),
    }
    worker.ear.input.trust();
    Ok(())
}

fn same_version(name: &str, protocol: &str, version: &str) -> Result<()> {
    anyhow::ensure!(
        protocol == PROTOCOL,
        "{name} speaks {} (longhaul {}), this program {PROTOCOL}: use the same version of longhaul everywhere",
        cut(protocol),
        cut(version)
    );
    Ok(())
}

/// What went wrong with the greeting of a coordinator; reads after its name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error(transparent)]
    Line(#[from] lines::Error),
    /// The connection cannot be set up.
    #[error(transparent)]
    Connection(#[from] io::Error),
    #[error("said nothing for {} s", GREETING_LIMIT.as_secs())]
    Silent,
    #[error("does not answer a hello with a challenge")]
    NoChallenge,
    #[error("does not know the token of this worker: give both the same")]
    Token,
}

/// Says hello to a coordinator. With a token, wants proof that the coordinator knows it, and gives the same.
pub(super) async fn introduce<R, W>(input: &mut Reading<R>, output: &mut W, token: Option<&Token>) -> Result<(), Error>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let ours = token.map(|_| nonce()).transpose()?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    write(output, &Word::Hello { protocol: PROTOCOL.to_owned(), version, nonce: ours.clone() }).await?;
    let (Some(token), Some(ours)) = (token, ours) else { return Ok(()) };
    let challenge = tokio::time::timeout(GREETING_LIMIT, input.next::<Order>()).await;
    let challenge = challenge.map_err(|_| Error::Silent)?;
    let Some(Order::Challenge { nonce: theirs, proof }) = challenge? else {
        return Err(Error::NoChallenge);
    };
    let nonces = Nonces { worker: &ours, coordinator: &theirs };
    if !is_nonce(&theirs) || !token.proves(Side::Coordinator, nonces, &proof) {
        let why = Error::Token;
        // The coordinator's user reads it there.
        let _ = write(output, &Word::Error { message: format!("the coordinator {why}") }).await;
        return Err(why);
    }
    write(output, &Word::Proof { proof: token.prove(Side::Worker, nonces) }).await?;
    input.trust();
    Ok(())
}

/// Connections that were closed because nobody of ours was at the other end.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    count: u32,
    last: String,
}

impl Refusals {
    /// Notes one, and says so unless there were many.
    pub(crate) fn note(&mut self, why: impl Display) {
        self.count = self.count.saturating_add(1);
        self.last = why.to_string();
        if self.count <= REFUSALS_TOLD {
            crate::out::err!("longhaul: refused a connection: {}", self.last);
        }
    }

    /// For the end of a message; empty when there were none.
    pub(crate) fn describe(&self) -> String {
        match self.count {
            0 => String::new(),
            1 => format!("; one connection was refused: {}", self.last),
            count => format!("; {count} connections were refused, the last because {}", self.last),
        }
    }
}
