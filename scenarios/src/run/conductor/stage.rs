//! State that exists only while subject and load run, by the part of the run that owns it.
//!
//! [`Subject`] owns the processes and all services that they call, [`Observers`] the measurements, [`Disturbances`] the
//! faults, [`Rows`] the interval rows, and [`Witness`] the channel of observations.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use loadgen::admission::Truth;
use mock_faults::Fault;
use reports::record::{Interval, MetricsPlan, MetricsRow, Phase, Sample};

use super::access::Owned;
use crate::clock::Clock;
use crate::metrics::Scraper;
use crate::observer::Observer;
use crate::run::alerts::Receiver;
use crate::run::arrival::disturbs_events;
use crate::run::attach::Handed;
use crate::run::canary::Canaries;
use crate::run::crashes::Crashes;
use crate::run::events::Events;
use crate::run::interval::{self, Intervals};
use crate::run::load::Load;
use crate::run::pacing::Pacing;
use crate::run::quiet::Quiet;
use crate::run::redis::Redis;
use crate::run::siblings::Siblings;
use crate::run::start::{Endpoints, Launcher};
use crate::run::timeline::Timeline;
use crate::run::validators::Validators;
use crate::run::world::World;
use crate::subject::{Log, Processes};
use crate::witness::{Open, Reported, Reporter};

pub(super) struct Stage<'a> {
    pub(super) events: Events<'a>,
    pub(super) observers: Observers,
    pub(super) subject: Subject<'a>,
    pub(super) load: Load,
    /// Searches the rate of the churn, if the scenario does not set the rate.
    pub(super) pacing: Option<Pacing>,
    pub(super) faults: Disturbances,
    pub(super) rows: Rows,
    pub(super) witness: Witness,
}

/// The subject, and the services that the run opened for it.
pub(super) struct Subject<'a> {
    pub(super) processes: Processes,
    pub(super) crashes: Crashes,
    /// The kubeconfig file of a subject that already runs, if the scenario asks for one.
    pub(super) _handed: Option<Handed>,
    /// The log file for processes that start later.
    pub(super) log: Log,
    /// How the processes are started.
    pub(super) launcher: Launcher<'a>,
    pub(super) endpoints: Endpoints,
    pub(super) receiver: Option<Arc<Receiver>>,
    /// The shared cache in which the subject keeps verdicts.
    pub(super) _redis: Option<Redis>,
    /// The subject's validators (the processes that verify signatures).
    pub(super) validators: Validators,
}

impl<'a> Subject<'a> {
    /// The parts of the subject that faults may change.
    pub(super) fn owned<'x>(&'x mut self, world: &'x World, truth: Option<&'x Arc<Truth>>) -> Owned<'x, 'a> {
        Owned {
            world,
            launcher: &self.launcher,
            endpoints: &mut self.endpoints,
            processes: &mut self.processes,
            log: &self.log,
            validators: &self.validators,
            truth,
        }
    }
}

/// Measures the subject and counts its objects.
pub(super) struct Observers {
    pub(super) resources: Observer,
    pub(super) rss_bytes: Option<u64>,
    /// Reads the subject's own metrics, if the subject has any.
    pub(super) metrics: Option<Scraper>,
    /// Counts the children of each parent, if the scenario names kinds of children.
    pub(super) siblings: Option<Siblings>,
    /// Observes the subject's writes in the drain, or holds the reason why not.
    pub(super) quiet: Option<Result<Quiet, String>>,
}

impl Observers {
    /// Starts to measure the processes `pids`.
    pub(super) fn start(clock: &Clock, pids: Vec<u32>, plan: Option<&MetricsPlan>) -> Result<Self> {
        let resources = Observer::start(clock.clone()).context("failed to start the observer")?;
        resources.watch(pids);
        let metrics = plan.map(|plan| Scraper::start(plan, clock.clone())).transpose().map_err(anyhow::Error::msg)?;
        Ok(Self { resources, rss_bytes: None, metrics, siblings: None, quiet: None })
    }

    /// Notes the memory of a sample, for the progress line.
    pub(super) fn sampled(&mut self, sample: &Sample) {
        self.rss_bytes = sample.subject.as_ref().map(|subject| subject.rss_bytes);
    }

    /// Follows the subject's processes from `before` to `now`.
    pub(super) fn follow(&self, before: &[u32], now: Vec<u32>) {
        if now.len() < before.len() {
            self.resources.left(now);
        } else if now != before {
            self.resources.watch(now);
        }
    }
}

/// Reads the subject's own metrics once more. Never completes if the subject has no metrics.
pub(super) async fn metrics(scraper: &mut Option<Scraper>) -> Option<MetricsRow> {
    match scraper {
        Some(scraper) => scraper.rows.recv().await,
        None => std::future::pending().await,
    }
}

/// The faults of the run and their canaries.
pub(super) struct Disturbances {
    pub(super) timeline: Timeline,
    pub(super) canaries: Canaries,
    pub(super) active: Vec<usize>,
    /// Number of commits before the first fault began.
    pub(super) commits_before: Option<u64>,
    /// Whether new commits count as faulted: from the begin of a fault until the subject has seen the canary after it.
    pub(super) taints_commits: bool,
}

impl Disturbances {
    /// The state before the subject starts; the faults `armed` are active already.
    pub(super) fn begin(timeline: Timeline, armed: Vec<usize>, faults: &[Fault]) -> Self {
        Self {
            timeline,
            canaries: Canaries::default(),
            commits_before: (!armed.is_empty()).then_some(0),
            taints_commits: armed.iter().any(|index| disturbs_events(&faults[*index])),
            active: armed,
        }
    }

    /// Notes that the fault `index` began after `commits` commits. Returns whether new commits count as faulted because
    /// of it.
    pub(super) fn began(&mut self, index: usize, fault: &Fault, commits: u64) -> bool {
        self.commits_before.get_or_insert(commits);
        self.active.push(index);
        let disturbs = disturbs_events(fault);
        self.taints_commits |= disturbs;
        disturbs
    }

    pub(super) fn ended(&mut self, index: usize) {
        self.active.retain(|active| *active != index);
    }

    /// Whether commits stop to count as faulted now, because the subject has seen the canary after the last fault.
    pub(super) fn has_recovered(&mut self, faults: &[Fault]) -> bool {
        let disturbed = self.active.iter().any(|index| disturbs_events(&faults[*index]));
        let recovered = self.taints_commits && !disturbed && !self.canaries.waits_after();
        self.taints_commits &= !recovered;
        recovered
    }
}

/// The interval rows of the record.
pub(super) struct Rows {
    pub(super) intervals: Intervals,
    pub(super) phase: Phase,
    due_ms: u64,
    /// The worst p99 of the warm-up's lags, which gives the deadline for observations.
    pub(super) warm_up_p99_us: Option<u64>,
}

impl Rows {
    pub(super) fn begin() -> Self {
        let due_ms = crate::clock::millis(interval::EVERY);
        Self { intervals: Intervals::default(), phase: Phase::WarmUp, due_ms, warm_up_p99_us: None }
    }

    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        now_ms >= self.due_ms
    }

    /// Lets no row become due until the next row is closed.
    pub(super) fn pause(&mut self) {
        self.due_ms = u64::MAX;
    }

    /// Whether the open row is at least `least` long.
    pub(super) fn is_longer_than(&self, least: Duration, now_ms: u64) -> bool {
        let from_ms = self.due_ms.saturating_sub(crate::clock::millis(interval::EVERY));
        now_ms >= from_ms + crate::clock::millis(least)
    }

    /// Notes that `row` was closed at `end_ms`.
    pub(super) fn closed(&mut self, row: &Interval, end_ms: u64) {
        self.due_ms = end_ms + crate::clock::millis(interval::EVERY);
        if self.phase == Phase::WarmUp {
            let p99_us = row.lag.as_ref().map(|lag| lag.p99_us.unwrap_or(lag.max_us));
            self.warm_up_p99_us = self.warm_up_p99_us.max(p99_us);
        }
    }
}

/// The channel of observations. Keeps the HTTP witness listening, and keeps the channel open for other witnesses.
pub(super) struct Witness {
    pub(super) reported: Reported,
    pub(super) _open: (Reporter, Open),
}
