//! Commits and observations on their way into the ledger, and the ledger's findings on their way into the record.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mocks::faults::Fault;
use mocks::kube;
use reports::ledger::{self, Change, Ledger};
use reports::record::{AnomalyRow, CommitEvent, EventCounts, Writer};

use super::Clock;
use super::world::SUBJECT;
use crate::witness::Seen;
use crate::witness::status::Status;

/// Commits that are taken from the control plane at a time.
const BATCH_MAX: usize = 1024;
/// Deadline D until the warm-up has shown what is usual (`events.md`: at least 5 s).
pub(super) const DEADLINE_MIN_MS: u64 = 5000;
/// D is so many times the unfaulted p99 of the warm-up.
const DEADLINE_FACTOR: u64 = 3;
/// Stream lines shown round an anomaly.
const WIRE_LINES: usize = 3;

/// The ledger with what feeds it.
pub(super) struct Events<'a> {
    kube: &'a kube::Server,
    kube_epoch: Instant,
    tail: kube::Tail,
    ledger: Ledger,
    clock: Clock,
    /// The resource under churn, as commits name it. Other resources are nobody's promise.
    resource: Option<String>,
    status: Option<Status>,
    faults: &'a [Fault],
    deadline_fixed: bool,
    deadline_ms: u64,
}

impl<'a> Events<'a> {
    pub(super) fn new(
        kube: &'a kube::Server,
        kube_epoch: Instant,
        clock: Clock,
        resource: Option<String>,
        deadline_ms: Option<u64>,
        status: Option<Status>,
        faults: &'a [Fault],
    ) -> Self {
        let first_ms = deadline_ms.unwrap_or(DEADLINE_MIN_MS);
        let ledger = Ledger::new(ledger::Config {
            deadline_ms: first_ms,
            numeric_revisions: true,
            deletions_observable: status.is_none(),
            ..ledger::Config::default()
        });
        let tail = kube.tail();
        Self {
            kube,
            kube_epoch,
            tail,
            ledger,
            clock,
            resource,
            status,
            faults,
            deadline_fixed: deadline_ms.is_some(),
            deadline_ms: first_ms,
        }
    }

    /// Waits until there are commits, and enters them.
    pub(super) async fn committed(&mut self, writer: &mut Writer) -> Result<()> {
        let batch = self.tail.next_batch(BATCH_MAX).await;
        let batch = batch.context("the harness fell behind the control plane's commits")?;
        self.enter(&batch, writer)
    }

    /// Enters what is committed already, so that no observation is looked at before its commit.
    fn catch_up(&mut self, writer: &mut Writer) -> Result<()> {
        loop {
            let batch =
                self.tail.try_batch(BATCH_MAX).context("the harness fell behind the control plane's commits")?;
            if batch.is_empty() {
                return Ok(());
            }
            self.enter(&batch, writer)?;
        }
    }

    fn enter(&mut self, batch: &[kube::Commit], writer: &mut Writer) -> Result<()> {
        for commit in batch {
            if self.resource.as_deref() != Some(&*commit.resource) {
                continue;
            }
            let at = self.kube_epoch + Duration::from_micros(commit.at_us);
            let t_ms = self.clock.at_ms(at);
            let revision = commit.revision.to_string();
            let change = change(commit.change);
            let mut proves = None;
            if let Some(status) = &mut self.status {
                let progress = commit.progress;
                let reading = status.read(&commit.uid, &revision, change, progress.generation, progress.observed);
                proves = reading.proves;
                if !reading.counts {
                    self.prove(t_ms, commit, proves);
                    continue;
                }
            }
            self.ledger.commit(&ledger::Commit {
                t_ms,
                resource: &commit.resource,
                namespace: &commit.namespace,
                name: &commit.name,
                uid: &commit.uid,
                rv: &revision,
                order: commit.revision,
                change,
            });
            writer.commit(&CommitEvent {
                t_ms,
                order: commit.revision,
                resource: commit.resource.to_string(),
                namespace: commit.namespace.to_string(),
                name: commit.name.to_string(),
                uid: commit.uid.to_string(),
                revision,
                change,
            })?;
            self.prove(t_ms, commit, proves);
        }
        Ok(())
    }

    /// What a status write proves.
    fn prove(&mut self, t_ms: u64, commit: &kube::Commit, revision: Option<Box<str>>) {
        let Some(rv) = revision else { return };
        let change = change(commit.change);
        self.ledger.observe(&observation(&Seen { t_ms, uid: (&*commit.uid).into(), rv, change }));
    }

    /// Enters what the subject proved, after everything that was committed before.
    pub(super) fn observed(&mut self, seen: &[Seen], writer: &mut Writer) -> Result<()> {
        self.catch_up(writer)?;
        for seen in seen {
            self.ledger.observe(&observation(seen));
        }
        Ok(())
    }

    /// Lets time pass and writes what the ledger decided. `end` when nothing more can come.
    pub(super) fn settle(&mut self, end: bool, writer: &mut Writer) -> Result<()> {
        self.catch_up(writer)?;
        for gap in self.kube.gaps(SUBJECT) {
            self.ledger.gap(&gap.resource, gap.after, gap.through);
        }
        let now_ms = self.clock.now_ms();
        let found: Vec<_> =
            if end { self.ledger.finish(now_ms).collect() } else { self.ledger.advance(now_ms).collect() };
        if self.ledger.contradictions() > 0 {
            bail!("the control plane's commits contradict each other: its order cannot be trusted");
        }
        for anomaly in found {
            let row = self.row(anomaly);
            writer.anomaly(&row)?;
        }
        Ok(())
    }

    /// An anomaly with what happened on the wire.
    fn row(&self, anomaly: ledger::Anomaly) -> AnomalyRow {
        let order = anomaly.order;
        let mut row = AnomalyRow::from(anomaly);
        if let Some(revision) = order {
            row.delivery = Some(self.delivery(&row.resource, revision));
            row.wire = self.kube.wire(SUBJECT, revision, WIRE_LINES);
        }
        row
    }

    /// What happened to a version on the wire, in words.
    fn delivery(&self, resource: &str, revision: u64) -> String {
        match self.kube.delivery(SUBJECT, resource, revision) {
            kube::Delivery::Sent { watch, at_us } => {
                let at_ms = self.clock.at_ms(self.kube_epoch + Duration::from_micros(at_us));
                format!("sent on watch {watch} at {at_ms} ms")
            }
            kube::Delivery::Withheld { fault } => match self.faults.get(fault.0 as usize) {
                Some(fault) => format!("withheld by the fault {}", fault.name.as_str()),
                None => "withheld by a fault".to_owned(),
            },
            kube::Delivery::NotSent => "not sent on any watch".to_owned(),
        }
    }

    /// The warm-up is over: from its lag follows the deadline, unless the scenario names one.
    pub(super) fn end_warm_up(&mut self, p99_us: Option<u64>) {
        if self.deadline_fixed {
            return;
        }
        let usual_ms = p99_us.unwrap_or(0) / 1000;
        self.deadline_ms = (usual_ms * DEADLINE_FACTOR).max(DEADLINE_MIN_MS);
        self.ledger.set_deadline(self.deadline_ms);
    }

    /// Commits made from now on are (or are not) under a fault.
    pub(super) fn faulted(&mut self, on: bool) {
        self.ledger.faulted(on);
    }

    pub(super) fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// When a canary was seen: the lag of that version in milliseconds.
    pub(super) fn resolved(&self, uid: &str, revision: &str) -> Option<u64> {
        self.ledger.resolved(uid, revision.parse().ok()?)
    }

    /// Versions that wait for their observation.
    pub(super) fn pending(&self) -> u64 {
        self.ledger.pending()
    }

    pub(super) fn counts(&self) -> EventCounts {
        self.ledger.counts()
    }

    pub(super) fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }
}

fn observation(seen: &Seen) -> ledger::Observation<'_> {
    let (uid, rv, change) = (&*seen.uid, &*seen.rv, seen.change);
    ledger::Observation { t_ms: seen.t_ms, uid, rv, change, resource: "", namespace: "", name: "" }
}

fn change(change: kube::Change) -> Change {
    match change {
        kube::Change::Added => Change::Added,
        kube::Change::Modified => Change::Modified,
        kube::Change::Deleted => Change::Deleted,
    }
}
