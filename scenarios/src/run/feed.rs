//! Commits in order, from the mock's own log or from the harness's watches of a real control plane.
//!
//! On a real control plane, the churn's reports of its writes are compared with the watches. If watches have gaps, or
//! the watches and the churn's reports differ, the harness must not blame the subject: verdicts that depend on commits
//! are then undecided.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use facts::{Commit, Looks, Order};
use loadgen::audit::{self, Agreement, Audit};
use loadgen::churn::{self, Writes};
use reports::record::HOLES_MAX;

pub(super) use super::entry::Entry;
use super::plane::Plane;
use super::restored::Past;

/// A time in which commits are unknown: begin, end, and the reason for the gap.
#[derive(Debug, Clone)]
pub(super) struct Unseen {
    pub(super) between: Option<(Instant, Instant)>,
    pub(super) why: String,
}

/// A source of commits of the judged resources.
pub(super) enum Feed {
    /// No source, because the run writes no objects.
    None,
    Tail(Box<Tailed>),
    Audit(Box<Audited>),
}

pub(super) struct Tailed {
    tail: mock_kube::Tail,
    epoch: Instant,
    resources: BTreeSet<String>,
    /// Handles restores of the control plane's store from an older state, if the scenario has any.
    past: Option<Past>,
}

pub(super) struct Audited {
    audit: Audit,
    agreement: Agreement,
}

impl Feed {
    /// Begins to read commits of the judged resources, each with its full name and its spelling in scenarios. Called
    /// before the first write. On a real control plane, only the first resource is read.
    pub(super) async fn follow(
        plane: &Plane,
        api: churn::Api,
        judged: &[(String, String)],
        looks: Option<Looks>,
        goes_back: bool,
    ) -> Result<Self> {
        let Some((_, spelled)) = judged.first().cloned() else { return Ok(Self::None) };
        if let Some(mock) = plane.mock() {
            let resources = judged.iter().map(|(name, _)| name.clone()).collect();
            let past = goes_back.then(Past::default);
            return Ok(Self::Tail(Box::new(Tailed { tail: mock.server.tail(), epoch: mock.epoch, resources, past })));
        }
        let mut config = audit::Config::new(api, &spelled);
        config.looks = looks;
        let audit = Audit::start(config).await.context("failed to start the audit of the control plane")?;
        Ok(Self::Audit(Box::new(Audited { audit, agreement: Agreement::default() })))
    }

    /// Waits for commits. Cancel safe.
    pub(super) async fn next(&mut self, max: usize) -> Result<Vec<Entry>> {
        match self {
            Self::None => std::future::pending().await,
            Self::Tail(tailed) => {
                let batch = tailed.tail.next_batch(max).await;
                tailed.entries(batch.context("the harness fell behind the control plane's commits")?)
            }
            Self::Audit(audited) => {
                let batch = audited.audit.next_batch(max).await?;
                Ok(audited.seen(batch))
            }
        }
    }

    /// Commits that can be read without waiting. `None` if no more commits can come.
    pub(super) fn ready(&mut self, max: usize) -> Result<Option<Vec<Entry>>> {
        match self {
            Self::None => Ok(None),
            Self::Tail(tailed) => tailed.ready(max),
            Self::Audit(audited) => match audited.audit.try_batch(max) {
                Ok(batch) => Ok((!batch.is_empty()).then(|| audited.seen(batch))),
                // The run is being closed, and everything was read.
                Err(audit::Error::Finished) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Receives the writes that the churn reports.
    pub(super) fn wrote(&mut self, writes: Option<Writes>) {
        if let (Self::Audit(audited), Some(writes)) = (self, writes) {
            audited.agreement.writes(writes);
            audited.agreement.advance(Instant::now());
        }
    }

    /// Ends the audit of a real control plane. Returns the gaps of the audit's watches, and the differences between
    /// these watches and a final list.
    pub(super) async fn confirm(&mut self) -> Result<Vec<Unseen>> {
        let Self::Audit(audited) = self else { return Ok(Vec::new()) };
        let report = audited.audit.finish().await.context("the audit of the control plane failed")?;
        let mut unseen: Vec<Unseen> = report
            .holes
            .iter()
            .take(HOLES_MAX)
            .map(|hole| Unseen { between: Some((hole.from, hole.until)), why: hole.reason.clone() })
            .collect();
        if let Some(first) = report.disagreements.first() {
            let number = report.disagreements_total;
            let why = format!("its watch and its last list disagree on {number} objects, first: {first}");
            unseen.push(Unseen { between: None, why });
        }
        Ok(unseen)
    }

    /// The gap if the watches never showed a write of the churn. To be called after all commits were read.
    pub(super) fn agreed(&mut self) -> Option<Unseen> {
        let Self::Audit(audited) = self else { return None };
        let outcome = std::mem::take(&mut audited.agreement).finish();
        (!outcome.agrees()).then(|| {
            let why = format!(
                "its watch confirmed {} writes of the churn, never showed {}, and {} could not be compared",
                outcome.confirmed, outcome.unseen_total, outcome.uncompared
            );
            Unseen { between: None, why }
        })
    }

    /// Whether the harness knows a commit immediately after the write.
    pub(super) fn is_at_hand(&self) -> bool {
        !matches!(self, Self::Audit(_))
    }

    /// Whether revisions are known to be numbers in the order of commits.
    pub(super) fn is_numeric(&self) -> bool {
        matches!(self, Self::Tail(tailed) if tailed.past.is_none())
    }
}

impl Tailed {
    fn ready(&mut self, max: usize) -> Result<Option<Vec<Entry>>> {
        // Restores are read first: if no commit is left afterwards, no commit from before a restore is unread.
        let rewinds = if self.past.is_some() { self.tail.rewinds() } else { Vec::new() };
        let batch = self.tail.try_batch(max).context("the harness fell behind the control plane's commits")?;
        if !batch.is_empty() {
            return self.entries(batch).map(Some);
        }
        let mut all = Vec::new();
        if let Some(past) = &mut self.past {
            past.catch_up(&rewinds, u32::MAX, self.epoch, &mut all)?;
        }
        Ok((!all.is_empty()).then_some(all))
    }

    fn entries(&mut self, mut batch: Vec<mock_kube::Entry>) -> Result<Vec<Entry>> {
        batch.retain(|entry| self.resources.contains(&*entry.commit.resource));
        let timelines: Vec<u32> = batch.iter().map(|entry| entry.timeline).collect();
        let entries: Vec<Entry> = batch.into_iter().map(|entry| entry_of(entry, self.epoch)).collect();
        match &mut self.past {
            Some(past) => past.enter(entries, &timelines, &self.tail.rewinds(), self.epoch),
            None => Ok(entries),
        }
    }
}

impl Audited {
    fn seen(&mut self, batch: Vec<audit::Entry>) -> Vec<Entry> {
        batch
            .into_iter()
            .map(|entry| {
                self.agreement.commit(&entry);
                Entry { at: entry.at, commit: entry.commit, progress: entry.progress, restored: false }
            })
            .collect()
    }
}

fn entry_of(entry: mock_kube::Entry, epoch: Instant) -> Entry {
    let at = epoch + Duration::from_micros(entry.at_us);
    // Without restores, revisions give the order of commits, and gaps are given in revisions.
    let commit = Commit { order: Order::of_numbered(entry.revision), ..entry.commit };
    Entry { at, commit, progress: entry.progress, restored: false }
}
