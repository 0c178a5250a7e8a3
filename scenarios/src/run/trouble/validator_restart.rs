//! The fault `validator-restart`: ends the service's validators (the processes that verify signatures) one after the
//! other, and starts each again at its old address. A hit is a validator that listens again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mock_faults::ValidatorRestartKeys;
use tokio::net::TcpStream;

use super::{LOOK_EVERY, PlayedFault};

/// The index of the first validator among the subject's processes; index 0 is the process with the webhook.
const FIRST: usize = 1;

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let keys = deed.fault.keys::<ValidatorRestartKeys>();
    let away = keys.away.unwrap_or_default().0;
    let mut times = deed.times(keys.pause);
    while let Some(number) = times.next().await? {
        times.does(replace(deed, usize::try_from(number)?, away)).await?;
    }
    Ok(())
}

async fn replace(deed: &PlayedFault<'_>, number: usize, away: Duration) -> Result<String> {
    let asked = deed.with(move |access| {
        let others = access.validators().others().to_vec();
        let validator = number.checked_rem(others.len()).context("the service has no validators")?;
        access.processes().send_away(FIRST + validator);
        let start_timeout = access.scenario().subject.start_timeout.0;
        anyhow::Ok((FIRST + validator, others[validator].listens, start_timeout))
    });
    let (index, address, start_timeout) = asked.await??;
    while !deed.with(move |access| access.processes().is_away(index)).await? {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    tokio::time::sleep(away).await;
    let started = deed
        .with(move |access| {
            let log = access.log().clone();
            access.processes().call_back(index, &log)
        })
        .await?;
    started.context("failed to start a validator again")?;
    listens(address, Instant::now() + start_timeout).await?;
    Ok("a validator was replaced".to_owned())
}

async fn listens(address: SocketAddr, deadline: Instant) -> Result<()> {
    while TcpStream::connect(address).await.is_err() {
        if Instant::now() >= deadline {
            bail!("a validator that was started again does not listen at {address}: look into subject.log");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}
