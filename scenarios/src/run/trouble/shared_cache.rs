//! The faults `shared-cache-away` and `shared-cache-forges`. A hit is a cut connection, or a read that got a forged
//! verdict.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::PlayedFault;
use crate::run::redis::Cache;

/// Interval of the counts. A fault that waits for a hit begins at most this much later.
const COUNT_EVERY: Duration = Duration::from_millis(20);

pub(super) async fn away(deed: &PlayedFault<'_>) -> Result<()> {
    let cache = cache(deed)?;
    let mut counted = cache.cut();
    cache.set_there(false);
    let mut count = || hits(deed, &mut counted, cache.cut(), "a connection to the shared cache was cut");
    while deed.rest(COUNT_EVERY).await {
        count();
    }
    cache.set_there(true);
    count();
    Ok(())
}

pub(super) async fn forges(deed: &PlayedFault<'_>) -> Result<()> {
    let cache = cache(deed)?;
    let mut counted = cache.forged();
    cache.set_forges(true);
    let mut count = || hits(deed, &mut counted, cache.forged(), "a read got a forged verdict");
    while deed.rest(COUNT_EVERY).await {
        count();
    }
    cache.set_forges(false);
    count();
    Ok(())
}

fn cache<'d>(deed: &'d PlayedFault<'_>) -> Result<&'d Arc<Cache>> {
    deed.ground()?.cache.as_ref().context("the scenario has no shared cache")
}

fn hits(deed: &PlayedFault<'_>, counted: &mut u64, now: u64, what: &str) {
    while *counted < now {
        *counted += 1;
        deed.hit(what.to_owned());
    }
}
