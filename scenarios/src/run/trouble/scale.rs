//! `scale`: the Deployments have other numbers of Pods while it lasts. Two hits: when they have them, and when they have their own again.

use std::time::{Duration, Instant};

use anyhow::Result;
use mock_faults::ScaleKeys;

use super::{Deed, LOOK_EVERY};

pub(super) async fn play(deed: &Deed<'_>) -> Result<()> {
    let subject = deed.subject()?;
    let to = u64::from(deed.fault.keys::<ScaleKeys>().to.unwrap_or(0));
    let _turn = deed.core.turn.lock().await;
    let before = subject.rollout.replicas().await?;
    let began = Instant::now();
    subject.rollout.scale(&vec![to; before.len()]).await?;
    let wanted = usize::try_from(to)?.saturating_mul(before.len());
    let mut is_told = false;
    loop {
        if !is_told && subject.here().await?.len() == wanted {
            let after = began.elapsed().as_secs_f64();
            deed.hit(format!("{} Deployments have {to} Pods each after {after:.1} s", before.len()));
            is_told = true;
        }
        if !deed.rest(if is_told { Duration::from_hours(24) } else { LOOK_EVERY }).await {
            break;
        }
    }
    subject.pods.died();
    let began = Instant::now();
    subject.rollout.scale(&before).await?;
    subject.wait("scaling back", |_| true).await?;
    let all: u64 = before.iter().sum();
    // What never had them has nothing to come back from.
    if is_told {
        deed.hit(format!("all {all} Pods were ready again {:.1} s later", began.elapsed().as_secs_f64()));
    }
    Ok(())
}
