//! Rollouts and killed Pods while load runs: what a cluster does to Deployments on an ordinary day.
//!
//! Owns when each is due, doing it, and the rows that prove that it was done: a rollout is a hit when every Pod of before is gone or going, a
//! killed Pod when it is gone or its containers were started again, and all are ready. One is done at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use reports::record::{FaultEvent, FaultRow};
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinSet;

use super::Rollout;
use super::rollout::Pod;
use crate::clock::millis;
use crate::scenario::{KillBy, Often};
use crate::subject::Pods;

/// Pods of the service drain for up to 40 s, and two follow each other.
const OVER_WITHIN: Duration = Duration::from_mins(3);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// All of a run.
pub(in crate::run) struct Troubles {
    rollout: Arc<Rollout>,
    pods: Pods,
    lines: Vec<Line>,
    under_way: JoinSet<Result<(usize, String)>>,
}

/// What is done several times.
struct Line {
    name: &'static str,
    often: Often,
    how: Option<KillBy>,
    begun: u32,
    done: u32,
}

impl Troubles {
    pub(super) fn new(rollout: &Arc<Rollout>, pods: &Pods, wanted: Vec<(&'static str, Often, Option<KillBy>)>) -> Self {
        let line = |(name, often, how)| Line { name, often, how, begun: 0, done: 0 };
        let lines = wanted.into_iter().map(line).collect();
        Self { rollout: Arc::clone(rollout), pods: pods.clone(), lines, under_way: JoinSet::new() }
    }

    /// The rows that say what is planned.
    pub(in crate::run) fn planned(&self) -> Vec<FaultRow> {
        let planned = |line: &Line| {
            let text = format!("{} times, one every {}", line.often.count, line.often.every);
            row(0, line.name, FaultEvent::Planned, 0, text)
        };
        self.lines.iter().map(planned).collect()
    }

    /// Begins what is due, and tells what was done.
    pub(in crate::run) fn tick(&mut self, now_ms: u64) -> Result<Vec<FaultRow>> {
        let mut rows = Vec::new();
        while let Some(done) = self.under_way.try_join_next() {
            rows.push(self.done(now_ms, done)?);
        }
        if self.under_way.is_empty() {
            let is_due = |line: &Line| line.often.due(line.begun).is_some_and(|due| now_ms >= millis(due));
            // Whoever was done less often has waited longer.
            let next =
                self.lines.iter_mut().enumerate().filter(|(_, line)| is_due(line)).min_by_key(|(_, line)| line.begun);
            if let Some((index, line)) = next {
                if line.begun == 0 {
                    rows.push(row(now_ms, line.name, FaultEvent::Started, 0, String::new()));
                }
                let (rollout, pods, number) = (Arc::clone(&self.rollout), self.pods.clone(), line.begun);
                line.begun += 1;
                let how = line.how;
                self.under_way.spawn(async move {
                    let told = match how {
                        None => restart(&rollout).await,
                        Some(by) => kill(&rollout, &pods, by, number).await,
                    };
                    told.map(|told| (index, told))
                });
            }
        }
        Ok(rows)
    }

    /// Load is over: whatever is not done now is not done.
    pub(in crate::run) fn finish(&mut self, now_ms: u64) -> Result<Vec<FaultRow>> {
        let mut rows = Vec::new();
        while let Some(done) = self.under_way.try_join_next() {
            rows.push(self.done(now_ms, done)?);
        }
        for line in std::mem::take(&mut self.lines) {
            let Line { name, often, done, .. } = line;
            anyhow::ensure!(
                done == often.count,
                "only {done} of {} times `{name}` was over when load ended: make `phases.steady` longer, or do it less often",
                often.count
            );
            rows.push(row(now_ms, name, FaultEvent::Ended, done.into(), String::new()));
        }
        Ok(rows)
    }

    fn done(&mut self, now_ms: u64, done: Result<Result<(usize, String)>, tokio::task::JoinError>) -> Result<FaultRow> {
        let (index, told) =
            done.context("a trouble broke")?.context("the harness could not trouble the subject's Pods")?;
        let line = self.lines.get_mut(index).context("nobody wanted it")?;
        line.done += 1;
        Ok(row(now_ms, line.name, FaultEvent::Hit, line.done.into(), told))
    }
}

/// Replaces every Pod. Returns what was done.
async fn restart(rollout: &Rollout) -> Result<String> {
    let began = Instant::now();
    let before: BTreeSet<String> = here(rollout).await?.into_iter().map(|pod| pod.uid).collect();
    rollout.restart().await?;
    wait(rollout, "the rollout", |all| all.iter().all(|pod| pod.is_going || !before.contains(&pod.uid))).await?;
    Ok(format!("{} Pods were replaced in {:.1} s", before.len(), began.elapsed().as_secs_f64()))
}

/// Kills one Pod, each time another one. Returns what was done.
async fn kill(rollout: &Rollout, pods: &Pods, by: KillBy, number: u32) -> Result<String> {
    let began = Instant::now();
    let all = here(rollout).await?;
    let index = usize::try_from(number)?.checked_rem(all.len()).context("there is no Pod to kill")?;
    let pod = &all[index];
    let name = &pod.name;
    let told = match by {
        KillBy::Delete => {
            rollout.delete(pod).await?;
            format!("{name} was deleted")
        }
        KillBy::Signal => {
            let pids = rollout.first_processes(pod);
            anyhow::ensure!(!pids.is_empty(), "no process of the Pod {name} was found");
            for container in &pod.containers {
                pods.will_be_killed(format!("{name}/{}", container.name));
            }
            for pid in pids.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
                kill_process(pid, Signal::KILL).with_context(|| format!("failed to kill the Pod {name}"))?;
            }
            format!("{name} got SIGKILL")
        }
    };
    pods.died();
    let is_over = |all: &[Pod]| match by {
        KillBy::Delete => all.iter().all(|other| other.uid != pod.uid),
        KillBy::Signal => all.iter().any(|other| other.uid == pod.uid && other.restarts() > pod.restarts()),
    };
    wait(rollout, "the killed Pod", is_over).await?;
    Ok(format!("{told}; all were ready {:.1} s later", began.elapsed().as_secs_f64()))
}

/// The Pods that are not going.
async fn here(rollout: &Rollout) -> Result<Vec<Pod>> {
    let mut all = rollout.pods().await?;
    all.retain(|pod| !pod.is_going);
    Ok(all)
}

/// Waits until it is over and all Pods are ready.
async fn wait(rollout: &Rollout, what: &str, is_over: impl Fn(&[Pod]) -> bool + Send + Sync) -> Result<()> {
    let deadline = Instant::now() + OVER_WITHIN;
    loop {
        let over = is_over(&rollout.pods().await?);
        let missing = rollout.missing().await;
        if over && missing.is_none() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let missing = missing.unwrap_or_else(|| "the old Pods are still there".to_owned());
            bail!("{what} was not over after {} s: {missing}", OVER_WITHIN.as_secs());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn row(t_ms: u64, name: &str, event: FaultEvent, hits: u64, detail: String) -> FaultRow {
    let detail = (!detail.is_empty()).then_some(detail);
    FaultRow { t_ms, id: name.to_owned(), name: name.to_owned(), event, hits, ok: None, detail }
}
