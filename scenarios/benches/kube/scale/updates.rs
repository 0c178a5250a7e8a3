//! Updates of one kind as fast as the answers, with one watcher: the reached rate, and whether the watcher keeps up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::kube::figures::Figure;
use crate::kube::lags::Lags;
use crate::kube::load::{Course, Write};
use crate::kube::measure::{BUSY, OBJECTS, Subject};
use crate::kube::watchers::{Wanted, Watchers};

/// The most updates per second: more than any server here answers, so that it only bounds memory.
const UPDATES_MAX: usize = 100_000;

/// Writes for this long.
pub(super) async fn measure(subject: &mut Subject, window: Duration) -> Result<()> {
    let count = UPDATES_MAX * usize::try_from(window.as_secs())?;
    let lags = Arc::new(Lags::of(subject.busy.next, count)?);
    let wanted = Wanted { count: 1, streams: None, lags: Some(Arc::clone(&lags)) };
    let mut watcher = Watchers::open(&subject.server.endpoint, BUSY, wanted).await?;
    let (meter, begun) = (subject.meter()?, Instant::now());
    let course = Course { count, until: Some(begun + window), lags: Some(Arc::clone(&lags)), ..Course::default() };
    let written = subject.busy.send(Write::Update, OBJECTS, course).await?;
    let elapsed = begun.elapsed();
    let told = watcher.delivered(written as u64).await?;
    let spent_us = subject.spent_us(&meter)?;
    watcher.close().await;
    ensure!(told >= written as u64, "the watcher was told of {told} of {written} updates");
    subject.figures.add(Figure::FloodRate, written as f64 / elapsed.as_secs_f64());
    subject.figures.add(Figure::FloodCpu, spent_us / written as f64);
    subject.figures.add(Figure::FloodLag, lags.p99_ms()?);
    Ok(())
}
