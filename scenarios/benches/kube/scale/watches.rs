//! Measures the watches of 1,000 nodes: their memory, and the time until all of them have received one change.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::kube::figures::Figure;
use crate::kube::load::Write;
use crate::kube::measure::{BUSY, SETTLING, Subject};
use crate::kube::watchers::{Wanted, Watchers};

/// Number of watches: 18 for each of 1,000 nodes.
const WATCHES: usize = 18_000;
/// Watches per HTTP/2 connection, fewer than kube-apiserver allows. 18,000 watches make 200 connections.
const STREAMS: usize = 90;

/// Opens the watches, reads the server's memory, and then measures `changes` changes, one after the other.
pub(super) async fn measure(subject: &mut Subject, changes: usize) -> Result<()> {
    let wanted = Wanted { count: WATCHES, streams: Some(STREAMS), lags: None };
    let mut watches = Watchers::open(&subject.server.endpoint, BUSY, wanted).await?;
    tokio::time::sleep(SETTLING).await;
    let mut expected = 0;
    for _ in 0..changes {
        subject.figures.add(Figure::WatchesMemory(WATCHES), subject.server.measured()?.rss_mib()?);
        let begun = Instant::now();
        subject.busy.flat_out(Write::Update, 1, 1).await?;
        expected += WATCHES as u64;
        let told = watches.delivered(expected).await?;
        ensure!(told >= expected, "{told} of {expected} events came");
        subject.figures.add(Figure::ToldAll(WATCHES), begun.elapsed().as_secs_f64() * 1e3);
    }
    subject.figures.add(Figure::WatchesMemory(WATCHES), subject.server.measured()?.rss_mib()?);
    watches.close().await;
    Ok(())
}
