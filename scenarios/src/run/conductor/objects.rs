//! Starts and ends the watches of objects that [`Siblings`], [`Quiet`] and [`hanging`] evaluate.

use std::time::Duration;

use anyhow::Context;
use mock_faults::Fault;
use reports::record::{self, Met, Objects};

use super::{Conductor, Halt};
use crate::run::hanging;
use crate::run::quiet::{Quiet, Window};
use crate::run::siblings::Siblings;

/// Longest wait until the watches of the quiet time are open.
const QUIET_BEGINS_MAX: Duration = Duration::from_secs(5);

impl Conductor<'_> {
    /// Starts to count children, before any child exists.
    pub(super) async fn begin_siblings(&mut self) -> Result<(), Halt> {
        let (scenario, api, clock) = (self.scenario, self.world.api(), self.clock.clone());
        let siblings = self.beside(Box::pin(async move { Siblings::start(scenario, &api, clock).await })).await?;
        self.stage()?.observers.siblings = siblings.context("the harness cannot see the subject's children")?;
        Ok(())
    }

    /// Called when the load has ended: starts to observe the subject's writes, and permits the faults that begin after the
    /// load.
    pub(super) async fn begin_quiet(&mut self) -> Result<(), Halt> {
        let (now_ms, drain) = (self.clock.now_ms(), self.scenario.phases.drain.0);
        let stage = self.stage()?;
        stage.faults.timeline.load_ended(now_ms);
        let last = self.scenario.faults.iter().filter_map(Fault::after_load).max();
        let window = Window::of(now_ms, drain, last.map(|after| after.0));
        let told = self.world.plane.mock().is_some();
        let mut writers = std::mem::take(self.requests.writers());
        writers.begin();
        let (scenario, api, clock) = (self.scenario, self.world.api(), self.clock.clone());
        let begins = async move {
            let begins = Quiet::start(scenario, &api, clock, window, told.then_some(&writers));
            let begun = tokio::time::timeout(QUIET_BEGINS_MAX.min(drain), begins).await;
            (begun.map_err(|_| "its watches were not open in time".to_owned()).transpose(), writers)
        };
        let (quiet, writers) = self.beside(Box::pin(begins)).await?;
        self.requests.go_on(writers);
        self.stage()?.observers.quiet = quiet;
        Ok(())
    }

    /// Called when the drain, which began at `from_ms`, is over: writes the facts about objects into the record.
    pub(super) async fn last_objects(&mut self, from_ms: u64) -> Result<(), Halt> {
        let to_ms = self.clock.now_ms();
        let Self { stage, writer, .. } = self;
        // This comes before other reads, because the subject goes on meanwhile.
        let queues = match stage.as_mut() {
            Some(stage) => stage.events.backlogs(from_ms, to_ms, writer)?,
            None => Vec::new(),
        };
        self.end_faults().await?;
        let drift = match self.world.troubles.drifts() {
            Some(drifts) => Some(self.beside(drifts.finish()).await?),
            None => None,
        };
        self.requests.write(&self.world.plane, &self.clock, &mut self.writer)?;
        let told = self.world.plane.mock().is_some();
        let foreign = self.requests.take_foreign();
        let mut objects = Objects { drift, queues, foreign, ..Objects::default() };
        if let Some(quiet) = self.stage()?.observers.quiet.take() {
            let writers = std::mem::take(self.requests.writers());
            objects.quiet = Some(match quiet {
                Ok(quiet) => self.beside(quiet.end(told.then_some(&writers))).await?,
                Err(why) => record::Quiet { unread: Some(why), ..record::Quiet::default() },
            });
        }
        if let Some(siblings) = self.stage()?.observers.siblings.take() {
            let grace_ms = self.stage()?.events.deadline_ms();
            objects.siblings = self.beside(siblings.end(grace_ms)).await?;
        }
        let (scenario, api, clock) = (self.scenario, self.world.api(), self.clock.clone());
        let failing = std::mem::take(self.requests.failing());
        let reads = async move { hanging::read(scenario, &api, &clock, &failing).await };
        objects.hanging = self.beside(Box::pin(reads)).await?;
        objects.ending = self.audit();
        self.writer.objects(&objects)?;
        Ok(())
    }

    /// Ends the audit of the run, if there is one, and returns the expectations that it compared.
    pub(super) fn audit(&mut self) -> Option<Vec<Met>> {
        let auditor = self.auditor.take()?;
        let hits = (0..self.scenario.faults.len()).map(|index| self.hit_count(index)).collect();
        let ended = auditor.end(self.world, &self.clock, hits);
        ended.unwrap_or_else(|error| {
            self.live.say(&format!("the end of the run could not be audited: {error:#}"));
            None
        })
    }

    /// Called when the run ends early: writes the facts about objects so far. Facts that only the drain shows are
    /// missing.
    pub(super) async fn objects_so_far(&mut self) {
        let Some(stage) = self.stage.as_mut() else { return };
        let grace_ms = stage.events.deadline_ms();
        let siblings = match stage.observers.siblings.take() {
            Some(siblings) => siblings.end(grace_ms).await,
            None => Vec::new(),
        };
        let foreign = self.requests.take_foreign();
        if siblings.is_empty() && foreign.is_none() {
            return;
        }
        let objects = Objects { siblings, foreign, ..Objects::default() };
        if let Err(error) = self.writer.objects(&objects) {
            self.live.say(&format!("{:#}", anyhow::Error::from(error)));
        }
    }
}
