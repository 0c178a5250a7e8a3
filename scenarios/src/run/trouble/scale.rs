//! The fault `scale`: changes the number of Pods of Deployments until the fault ends. The fault has two hits: when the
//! new number of Pods is ready, and when the old number is ready again.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use mock_faults::ScaleKeys;

use super::{LOOK_EVERY, PlayedFault, Subject};

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let subject = deed.subject()?;
    let to = u64::from(deed.fault.keys::<ScaleKeys>().to.unwrap_or(0));
    let _turn = tokio::select! {
        biased;
        () = deed.ended.cancelled() => bail!("another fault of Pods took all of its time: let it begin later, or longer"),
        turn = deed.core.turn.lock() => turn,
    };
    let before = subject.rollout.replicas().await?;
    let held = hold(deed, subject, to, before.len()).await;
    subject.pods.died();
    let began = Instant::now();
    // Even after an error, the Deployments get their old numbers of Pods back.
    subject.rollout.scale(&before).await?;
    let is_told = held?;
    subject.wait("scaling back", |_| true).await?;
    let all: u64 = before.iter().sum();
    // If the new number was never reached, there is no return to report.
    if is_told {
        deed.hit(format!("all {all} Pods were ready again {:.1} s later", began.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// Sets the number of Pods of each of `deployments` Deployments to `to`, until the fault ends. Returns whether the
/// Deployments reached this number.
async fn hold(deed: &PlayedFault<'_>, subject: &Subject, to: u64, deployments: usize) -> Result<bool> {
    let began = Instant::now();
    subject.rollout.scale(&vec![to; deployments]).await?;
    let wanted = usize::try_from(to)?.saturating_mul(deployments);
    let mut is_told = false;
    loop {
        // While an API server is away nothing is known, and nothing is lost.
        if !is_told && subject.here().await.is_ok_and(|pods| pods.len() == wanted) {
            let after = began.elapsed().as_secs_f64();
            deed.hit(format!("{deployments} Deployments have {to} Pods each after {after:.1} s"));
            is_told = true;
        }
        if !deed.rest(if is_told { Duration::from_hours(24) } else { LOOK_EVERY }).await {
            return Ok(is_told);
        }
    }
}
