//! The fault `leader-loss`: stops the control plane that holds the Lease of kube-controller-manager. A hit is the
//! takeover by another control plane.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use kind::leaders::Leaders;

use super::{LOOK_EVERY, PlayedFault};

/// Number of control planes that a cluster needs to survive the loss of one.
const NEEDED: usize = 3;

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let leaders = deed.ground()?.leaders.as_ref().context("the control planes of this cluster are not known")?;
    let all = leaders.all().await?;
    ensure!(
        all.len() >= NEEDED,
        "the cluster has {} control plane(s), and two have to go on: `longhaul cluster up --kind kind --control-planes 3`, or \
         `longhaul soak … --control-planes 3`",
        all.len()
    );
    let leader = leaders.leader(&all[0]).await?.context("no control plane leads")?;
    let other = all.iter().find(|name| **name != leader).context("there is no other control plane")?;
    if deed.ended.is_cancelled() {
        return Ok(());
    }
    let still = leaders.stop(&leader).await?;
    let told = take_over(deed, leaders, &leader, other).await;
    still.go_on().await?;
    told
}

/// Runs until the fault ends. Reports the takeover by another control plane as one hit.
async fn take_over(deed: &PlayedFault<'_>, leaders: &Leaders, leader: &str, seen_from: &str) -> Result<()> {
    let began = Instant::now();
    let mut is_told = false;
    while deed.rest(LOOK_EVERY).await {
        if is_told {
            continue;
        }
        // If the API does not answer for a moment, the request is repeated, because etcd also elects a leader.
        let asked = tokio::select! {
            () = deed.ended.cancelled() => return Ok(()),
            asked = leaders.leader(seen_from) => asked,
        };
        let Ok(Some(now)) = asked else { continue };
        if now != leader {
            deed.hit(format!("{leader} was stopped; {now} leads after {:.1} s", began.elapsed().as_secs_f64()));
            is_told = true;
        }
    }
    Ok(())
}
