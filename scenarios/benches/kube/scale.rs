//! The `scale-…` measurements of a server's limits, which run only on request, because each takes minutes and much
//! memory.
//!
//! This module defines the memory and the time limit of each `scale-…` measurement.

mod objects;
mod reader;
mod updates;
mod watches;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use procfs::Current as _;

use super::measure::{Effort, Measurement, Subject, allow, say};

/// Time limit of a measurement on one server, with all its rounds. On a busy machine a real server creates some hundred
/// objects a second.
const LIMIT: Duration = Duration::from_mins(15);

/// Memory in MiB that a measurement needs: for the mock and the benchmark together, and in addition for a real server.
const fn needed_mib(part: Measurement, effort: Effort) -> (usize, usize) {
    // A list of them in one piece takes several times their size in a real server.
    let objects_mib = effort.objects * objects::BYTES / (1 << 20);
    match part {
        Measurement::ScaleWatches => (1_500, 6_000),
        Measurement::ScaleObjects => (500 + 2 * objects_mib, 1_000 + 8 * objects_mib),
        _ => (1_000, 2_000),
    }
}

/// Prints the memory that a measurement needs, and fails if there is less. Returns whether the memory is enough for a
/// real server as well.
pub(crate) fn has_room(part: Measurement, effort: Effort) -> Result<bool> {
    let (mock, real) = needed_mib(part, effort);
    let meminfo = procfs::Meminfo::current().context("failed to read how much memory is free")?;
    let free = usize::try_from(meminfo.mem_available.unwrap_or(meminfo.mem_free))? >> 20;
    let minutes = LIMIT.as_secs() / 60;
    println!(
        "at most {minutes} min a server; {mock} MiB of memory, {real} MiB more for a real server; {free} MiB are free"
    );
    if free < mock {
        bail!("skipped: needs {mock} MiB of free memory");
    }
    Ok(free >= mock + real)
}

/// Runs one measurement on all servers. With several rounds, the measurement alternates between the servers.
pub(crate) async fn measure(subjects: &mut [Subject], part: Measurement, effort: Effort) -> Result<()> {
    let rounds = match part {
        Measurement::ScaleUpdates => effort.rounds,
        // An equal number of rounds in both orders.
        Measurement::ScaleReader => 2 * effort.rounds,
        _ => 1,
    };
    for round in 1..=rounds {
        for subject in &mut *subjects {
            say(subject, &format!("{part:?}, round {round} of {rounds}"));
            let work = async {
                match part {
                    Measurement::ScaleUpdates => updates::measure(subject, effort.window).await,
                    Measurement::ScaleWatches => watches::measure(subject, effort.rounds).await,
                    Measurement::ScaleObjects => objects::measure(subject, effort.objects).await,
                    Measurement::ScaleReader => reader::measure(subject, effort.window, round).await,
                    Measurement::Watchers | Measurement::Lists | Measurement::Events => Ok(()),
                }
            };
            let limit = LIMIT / u32::try_from(rounds)?;
            let outcome = tokio::time::timeout(limit, work).await;
            let outcome = outcome.unwrap_or_else(|_| bail!("it took longer than {limit:?}"));
            allow(subject, outcome)?;
        }
    }
    Ok(())
}
