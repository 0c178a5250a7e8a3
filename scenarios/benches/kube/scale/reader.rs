//! Measures whether a watch that the client never reads delays other watches.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::kube::figures::Figure;
use crate::kube::lags::Lags;
use crate::kube::load::{Course, Write};
use crate::kube::measure::{BUSY, OBJECTS, Subject};
use crate::kube::watchers::{Wanted, Watchers, unread};

const WATCHERS: usize = 100;
const WRITES_PER_SECOND: u32 = 100;
/// Number of updates before the measurement: 13 MB of events, more than the buffers between server and client hold.
const FILLING: usize = 8_000;

/// Measures the delay with and without the unread watch. The order of these two measurements changes from round to
/// round.
pub(super) async fn measure(subject: &mut Subject, window: Duration, round: usize) -> Result<()> {
    let first = round.is_multiple_of(2);
    let [one, other] = [lag_ms(subject, window, first).await?, lag_ms(subject, window, !first).await?];
    let (beside, alone) = if first { (one, other) } else { (other, one) };
    subject.figures.add(Figure::LagAlone(WATCHERS), alone);
    subject.figures.add(Figure::LagBeside(WATCHERS), beside);
    subject.figures.add(Figure::LagRatio(WATCHERS), beside / alone);
    Ok(())
}

/// The delay within which 99 of 100 events arrive, in milliseconds.
async fn lag_ms(subject: &mut Subject, window: Duration, beside_unread: bool) -> Result<f64> {
    let _unread = if beside_unread { Some(unread(&subject.server.endpoint, BUSY).await?) } else { None };
    subject.busy.flat_out(Write::Update, OBJECTS, FILLING).await?;
    let writes = usize::try_from(u64::from(WRITES_PER_SECOND) * window.as_secs())?;
    let lags = Arc::new(Lags::of(subject.busy.next, writes)?);
    let wanted = Wanted { count: WATCHERS, streams: None, lags: Some(Arc::clone(&lags)) };
    let mut watchers = Watchers::open(&subject.server.endpoint, BUSY, wanted).await?;
    let course = Course {
        count: writes,
        per_second: Some(f64::from(WRITES_PER_SECOND)),
        lags: Some(Arc::clone(&lags)),
        ..Course::default()
    };
    subject.busy.send(Write::Update, OBJECTS, course).await?;
    let expected = (WATCHERS * writes) as u64;
    let told = watchers.delivered(expected).await?;
    watchers.close().await;
    ensure!(told >= expected, "{told} of {expected} events came");
    lags.p99_ms()
}
