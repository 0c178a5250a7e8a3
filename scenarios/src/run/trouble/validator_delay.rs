//! The fault `validator-delay`: delays the bytes to and from the service's validators (the processes that verify
//! signatures). A hit is a connection whose bytes come late.
//!
//! If the delay is at least as long as a review may take, the load accepts refusals of any image during the fault.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use loadgen::admission::Truth;
use mock_faults::{Fault, FaultId, Name, VALIDATOR_LATE, ValidatorDelayKeys};
use units::Span;

use super::{Access, LOOK_EVERY, PlayedFault};

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let delay = deed.fault.keys::<ValidatorDelayKeys>().delay.unwrap_or(VALIDATOR_LATE).0;
    let (id, mut counted) = (deed.id, 0);
    let truth = deed.with(move |access| begin(access, id, delay)).await??;
    while deed.rest(LOOK_EVERY).await {
        count(deed, &mut counted).await?;
    }
    deed.with(move |access| access.validators().proxies().iter().for_each(|proxy| proxy.faults().end(id))).await?;
    count(deed, &mut counted).await?;
    // Answers that are already delayed, and answers in the queue behind them, arrive at their planned time.
    tokio::time::sleep(delay / 2).await;
    if let Some(truth) = truth {
        truth.well(id.0);
    }
    Ok(())
}

/// Begins the delay. Returns the right answers to reviews, if they change during the fault.
fn begin(access: &mut dyn Access, id: FaultId, delay: Duration) -> Result<Option<Arc<Truth>>> {
    let patience = access.scenario().admission.as_ref().map_or(Duration::ZERO, |load| load.timeout.0);
    let truth = access.truth().filter(|_| delay >= patience).cloned();
    if let Some(truth) = &truth {
        truth.sick(id.0, None);
    }
    let fault = Fault::armed(Name::NetLatency).set("delay", Span(delay / 2));
    for proxy in access.validators().proxies() {
        proxy.faults().begin(id, &fault).context("a validator's answers could not be held up")?;
    }
    Ok(truth)
}

/// Counts the connections that the proxies have delayed since the last call.
async fn count(deed: &PlayedFault<'_>, counted: &mut u64) -> Result<()> {
    let id = deed.id;
    let delayed = deed.with(move |access| {
        let proxies = access.validators().proxies().iter();
        proxies.map(|proxy| proxy.faults().hits(id)).sum::<u64>()
    });
    let delayed = delayed.await?;
    while *counted < delayed {
        *counted += 1;
        deed.hit("a connection to a validator is slow".to_owned());
    }
    Ok(())
}
