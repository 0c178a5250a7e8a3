//! The fault `rolling-restart`. A hit is a rollout after which all old Pods are deleted or terminating, and all new
//! Pods are ready.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::Result;
use mock_faults::PauseKeys;

use super::{PlayedFault, Subject};

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let (subject, keys) = (deed.subject()?, deed.fault.keys::<PauseKeys>());
    let mut times = deed.times(keys.pause);
    while times.next().await?.is_some() {
        times.does(restart(subject)).await?;
    }
    Ok(())
}

/// Replaces all Pods. Returns a description of the rollout.
async fn restart(subject: &Subject) -> Result<String> {
    let began = Instant::now();
    let before: BTreeSet<String> = subject.here().await?.into_iter().map(|pod| pod.uid).collect();
    subject.rollout.restart().await?;
    subject.wait("the rollout", |all| all.iter().all(|pod| pod.is_going || !before.contains(&pod.uid))).await?;
    Ok(format!("{} Pods were replaced in {:.1} s", before.len(), began.elapsed().as_secs_f64()))
}
