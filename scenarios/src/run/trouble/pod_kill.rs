//! The fault `pod-kill`. A hit is a Pod that is deleted, or whose containers were restarted, when all Pods are ready
//! again.

use std::time::Instant;

use anyhow::{Context as _, Result};
use mock_faults::{KillBy, PodKillKeys};
use rustix::process::{Pid, Signal, kill_process};

use super::{LOOK_EVERY, OVER_WITHIN, PlayedFault, Subject};
use crate::run::deploy::Pod;

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let (subject, keys) = (deed.subject()?, deed.fault.keys::<PodKillKeys>());
    let by = keys.by.unwrap_or_default();
    let mut times = deed.times(keys.pause);
    while let Some(number) = times.next().await? {
        times.does(kill(subject, by, number)).await?;
    }
    Ok(())
}

/// Kills one Pod, a different Pod at each call. Returns a description of the kill.
async fn kill(subject: &Subject, by: KillBy, number: u64) -> Result<String> {
    let began = Instant::now();
    let all = subject.here().await?;
    let index = usize::try_from(number)?.checked_rem(all.len()).context("there is no Pod to kill")?;
    let pod = &all[index];
    let name = &pod.name;
    let told = match by {
        KillBy::Delete => {
            subject.rollout.delete(pod).await?;
            format!("{name} was deleted")
        }
        KillBy::Evict => {
            evict(subject, pod).await?;
            format!("{name} was evicted")
        }
        KillBy::Signal => {
            signal(subject, pod)?;
            format!("{name} got SIGKILL")
        }
    };
    if by != KillBy::Evict {
        subject.pods.died();
    }
    let is_over = |all: &[Pod]| match by {
        KillBy::Delete | KillBy::Evict => all.iter().all(|other| other.uid != pod.uid),
        KillBy::Signal => all.iter().any(|other| other.uid == pod.uid && other.restarts() > pod.restarts()),
    };
    subject.wait("the killed Pod", is_over).await?;
    Ok(format!("{told}; all were ready {:.1} s later", began.elapsed().as_secs_f64()))
}

fn signal(subject: &Subject, pod: &Pod) -> Result<()> {
    let Pod { name, .. } = pod;
    let pids = subject.rollout.first_processes(pod);
    anyhow::ensure!(!pids.is_empty(), "no process of the Pod {name} was found");
    for container in &pod.containers {
        subject.pods.will_be_killed(format!("{name}/{}", container.name));
    }
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        kill_process(pid, Signal::KILL).with_context(|| format!("failed to kill the Pod {name}"))?;
    }
    Ok(())
}

/// Evicts a Pod. A `PodDisruptionBudget` may forbid the eviction until another Pod is ready.
async fn evict(subject: &Subject, pod: &Pod) -> Result<()> {
    let deadline = Instant::now() + OVER_WITHIN;
    while !subject.rollout.evict(pod).await? {
        anyhow::ensure!(
            Instant::now() < deadline,
            "a PodDisruptionBudget forbids to evict {} for {} s: let it allow one, or use `by: delete`",
            pod.name,
            OVER_WITHIN.as_secs()
        );
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}
