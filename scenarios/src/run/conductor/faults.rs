//! Faults and canaries in a run: their begin and end, their hits, and their rows in the record.

use std::time::Duration;

use mock_faults::{Family, Fault, Name};
use reports::record::{FaultEvent, FaultRow};

use super::{Conductor, Halt};
use crate::run::canary::Which;
use crate::run::manifest::{describe, fault_id};
use crate::run::timeline::Action;

/// Faults that begin within this time share an interval row, which bounds the number of rows.
const ROW_LEAST: Duration = Duration::from_millis(500);

impl Conductor<'_> {
    /// Handles hits, and begins and ends faults whose time has come. Called from the start of the subject on, because a
    /// fault may wait for the subject's first list.
    pub(super) fn faults(&mut self) -> Result<(), Halt> {
        self.fired()?;
        self.hits()?;
        while let Some(action) = self.due()? {
            self.act(action)?;
        }
        Ok(())
    }

    fn due(&mut self) -> Result<Option<Action>, Halt> {
        let now_ms = self.clock.runs().then(|| self.clock.now_ms());
        let timeline = &mut self.stage()?.faults.timeline;
        Ok(match now_ms {
            Some(now_ms) => timeline.due(now_ms),
            None => timeline.due_early(),
        })
    }

    fn act(&mut self, action: Action) -> Result<(), Halt> {
        match action {
            Action::CanaryBefore(index) => self.canary(index, FaultEvent::CanaryBefore),
            Action::CanaryAfter(index) => self.canary(index, FaultEvent::CanaryAfter),
            Action::Begin(index) => {
                self.cut(index)?;
                self.tell_truth(index, true);
                self.world.begin(kube_id(index), &self.scenario.faults[index])?;
                self.world.began(kube_id(index));
                self.begun(index)
            }
            Action::End(index) => self.end_fault(index),
        }
    }

    /// Records that a fault has begun.
    fn begun(&mut self, index: usize) -> Result<(), Halt> {
        let now_ms = self.clock.now_ms();
        let fault = &self.scenario.faults[index];
        let stage = self.stage()?;
        let commits = stage.events.counts().commits;
        stage.events.arrivals().began(index, now_ms);
        if stage.faults.began(index, fault, commits) {
            stage.events.faulted(true);
        }
        let row = self.fault_row(index, FaultEvent::Started, 0, None);
        self.live_say(&format!("{:>4}s fault begins: {}", now_ms / 1000, describe(fault)));
        Ok(self.writer.fault(&row)?)
    }

    /// Handles the writes with which faults begin. The engine has already begun the faults of the API server.
    fn fired(&mut self) -> Result<(), Halt> {
        for (at, fired) in self.world.take_fired() {
            let index = fired.fault.0 as usize;
            if index >= self.scenario.faults.len() {
                continue;
            }
            let at_ms = if self.clock.runs() { self.clock.at_ms(at) } else { 0 };
            self.stage()?.faults.timeline.fired(index, at_ms, fired.begun);
            if fired.begun {
                self.tell_truth(index, true);
                self.begun(index)?;
            }
        }
        Ok(())
    }

    /// Closes the interval row when a planned fault begins, so that the next row contains the effects of the fault. A
    /// fault that waits for a hit begins at once and closes no row.
    fn cut(&mut self, index: usize) -> Result<(), Halt> {
        let planned = self.scenario.faults[index].when.is_none() && self.clock.runs();
        let now_ms = self.clock.now_ms();
        if planned && self.stage()?.rows.is_longer_than(ROW_LEAST, now_ms) {
            self.interval(false)?;
        }
        Ok(())
    }

    fn end_fault(&mut self, index: usize) -> Result<(), Halt> {
        self.world.end(kube_id(index), &self.scenario.faults[index]);
        self.tell_truth(index, false);
        self.hits()?;
        let hits = self.hit_count(index);
        let now_ms = self.clock.now_ms();
        let stage = self.stage()?;
        stage.faults.ended(index);
        stage.events.arrivals().ended(index, now_ms);
        let row = self.fault_row(index, FaultEvent::Ended, hits, None);
        Ok(self.writer.fault(&row)?)
    }

    /// Tells the load that a fault of the registry changes the right answers to reviews.
    pub(super) fn tell_truth(&self, index: usize, begins: bool) {
        let fault = &self.scenario.faults[index];
        let Some(truth) = self.truth.as_ref().filter(|_| makes_sick(fault)) else { return };
        let by = u32::try_from(index).unwrap_or(u32::MAX);
        if begins { truth.sick(by, self.world.references(fault)) } else { truth.well(by) }
    }

    /// Ends the faults that are still active when the load ends, or when the drain ends, and waits until their changes
    /// are undone and their hits are counted.
    pub(super) async fn end_faults(&mut self) -> Result<(), Halt> {
        for action in self.stage()?.faults.timeline.finish() {
            self.act(action)?;
        }
        let world = self.world;
        self.beside(world.troubles.settled()).await?;
        self.faults()?;
        Ok(())
    }

    /// Ends the attacks that still run when the load ends.
    pub(super) fn end_attacks(&mut self) -> Result<(), Halt> {
        let now_ms = self.clock.now_ms();
        let stage = self.stage()?;
        let attacks = stage.load.attacks().map(|attacks| attacks.finish(now_ms)).unwrap_or_default();
        for row in attacks {
            self.writer.fault(&row)?;
        }
        Ok(())
    }

    pub(super) fn hit_count(&self, index: usize) -> u64 {
        self.world.hits(kube_id(index), &self.scenario.faults[index])
    }

    fn hits(&mut self) -> Result<(), Halt> {
        for (at, hit) in self.world.take_hits() {
            let index = hit.fault.0 as usize;
            let Some(fault) = self.scenario.faults.get(index) else { continue };
            let hits = self.hit_count(index);
            let mut row = self.fault_row(index, FaultEvent::Hit, hits, Some(hit.detail));
            row.t_ms = self.clock.at_ms(at);
            self.writer.fault(&row)?;
            let stage = self.stage()?;
            stage.faults.timeline.hit(index, row.t_ms);
            stage.events.arrivals().hit(index);
            if let Some(id) = &fault.id {
                stage.load.hit(id, at);
            }
        }
        Ok(())
    }

    fn canary(&mut self, index: usize, event: FaultEvent) -> Result<(), Halt> {
        let fault = &self.scenario.faults[index];
        let hits = self.hit_count(index);
        let which = Which { id: fault_id(index, fault), name: fault.name.as_str().to_owned(), event, hits };
        let pulls = fault.name.row().family == Family::Registry;
        let door = if pulls { self.world.registry_canary() } else { None };
        let stage = self.stage()?;
        match door {
            Some((door, path)) => stage.faults.canaries.pull(which, door, path),
            None => stage.faults.canaries.write(which, stage.load.canaries(fault.resource.as_deref())),
        }
        Ok(())
    }

    pub(super) fn canaries(&mut self, now_ms: u64) -> Result<(), Halt> {
        let Some(stage) = self.stage.as_mut() else { return Ok(()) };
        let events = &stage.events;
        let rows = stage.faults.canaries.decided(now_ms, &mut |uid, revision| events.resolved(uid, revision));
        for row in rows {
            self.writer.fault(&row)?;
        }
        if stage.faults.has_recovered(&self.scenario.faults) {
            stage.events.faulted(false);
        }
        Ok(())
    }

    pub(super) fn fault_row(&self, index: usize, event: FaultEvent, hits: u64, detail: Option<String>) -> FaultRow {
        let (id, name) = match self.scenario.faults.get(index) {
            Some(fault) => (fault_id(index, fault), fault.name.as_str().to_owned()),
            None => (index.to_string(), String::new()),
        };
        FaultRow { t_ms: self.clock.now_ms(), id, name, event, hits, ok: None, detail }
    }
}

/// Whether a fault can prevent that the subject resolves an image.
fn makes_sick(fault: &Fault) -> bool {
    let cuts = fault.name.row().family == Family::Registry || fault.name == Name::NetworkPolicy;
    cuts && !matches!(fault.name, Name::RegistryTagMoved | Name::RegistryReferrers404)
}

pub(super) fn kube_id(index: usize) -> mock_faults::FaultId {
    mock_faults::FaultId(u32::try_from(index).unwrap_or(u32::MAX))
}
