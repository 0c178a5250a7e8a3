//! The main task of a run: owns the record and the ledger, and performs all actions at their times.
//!
//! All events arrive in one `select!`: commits, observations, samples, signals, ticks of a timer. A single loop means
//! that the record has one writer, the ledger sees all events in one order, and no lock is needed. Long work (creating
//! the objects, stopping load, stopping the subject) runs beside this loop, because commits and observations continue.

mod access;
mod crashes;
mod ending;
mod faults;
mod last_look;
mod objects;
mod stage;
mod unasked;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use loadgen::admission::Truth;
use reports::record::{EndReason, FaultEvent, Hole, Phase, Writer};

use self::faults::kube_id;
use self::stage::{Disturbances, Observers, Rows, Stage, Subject, Witness};
use self::unasked::Unasked;
use super::attacks::Attacks;
use super::audit::Auditor;
use super::audited::AuditedRequests;
use super::crashes::Crashes;
use super::events::{Drained, Events};
use super::growth::Growth;
use super::interval::Now;
use super::live::{self, Facts};
use super::load::{Load, LoadPlan};
use super::manifest::{describe, fault_id};
use super::pacing::Pacing;
use super::ready::{Ready, wait_until_ready};
use super::requests::Requests;
use super::start::SubjectPlan;
use super::timeline::Timeline;
use super::wake::Wake;
use super::world::World;
use crate::clock::Clock;
use crate::live::Live;
use crate::load::workers::Gone;
use crate::scenario::Scenario;
use crate::signals::Signals;
use crate::subject::{Exit, Log};

/// Precision of phases and faults. Lags are more precise, because lags are measured from the times of commit and
/// observation. If a phase or fault waits for a hit, the hit itself wakes the main task: a client without pauses
/// reconnects within a few milliseconds.
const TICK: Duration = Duration::from_millis(20);
const OBSERVATIONS_MAX: usize = 1024;

pub(super) struct Conductor<'a> {
    scenario: &'a Scenario,
    world: &'a World,
    record: std::path::PathBuf,
    writer: Writer,
    live: Live,
    signals: Option<Signals>,
    clock: Clock,
    stage: Option<Stage<'a>>,
    /// Begin and end of the drain; `None` until the drain has ended.
    drained: Option<Drained>,
    told: AuditedRequests,
    /// Checks whether the subject requests a churned resource; `None` after its first such request.
    unasked: Option<Unasked>,
    requests: Requests,
    /// The right answers to reviews, with which the load compares the webhook's answers.
    truth: Option<Arc<Truth>>,
    growth: Growth,
    /// Whether the disk was full when the last row of the record was written.
    full: bool,
    /// The times in which the harness could not observe a real control plane.
    holes: Vec<Hole>,
    /// Observes the store, if a caller or a budget needs an audit.
    auditor: Option<Auditor>,
}

/// The reason why the main loop of the run ended before the current phase was done.
enum Halt {
    Signal(&'static str),
    SubjectExited(Exit),
    /// The subject makes no request for a churned resource. The text is the message for the user.
    NeverAsked(String),
    /// A Pod that sends load was removed.
    LoadLost(String),
    /// The harness itself failed.
    Broken(anyhow::Error),
}

impl From<anyhow::Error> for Halt {
    fn from(error: anyhow::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<reports::record::Error> for Halt {
    fn from(error: reports::record::Error) -> Self {
        Self::Broken(anyhow::Error::from(error).context("failed to write the run record"))
    }
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        world: &'a World,
        record: std::path::PathBuf,
        writer: Writer,
        live: Live,
        signals: Signals,
        growth: Growth,
    ) -> Self {
        Self {
            scenario,
            world,
            record,
            writer,
            live,
            signals: Some(signals),
            clock: Clock::default(),
            stage: None,
            drained: None,
            told: AuditedRequests::from_now(scenario, &world.plane),
            unasked: None,
            requests: Requests::new(scenario, &world.plane),
            truth: None,
            growth,
            full: false,
            holes: Vec::new(),
            auditor: None,
        }
    }

    /// Audits the run, if `budgets.ending` or the caller needs it; `out` is the file for the audit.
    pub(super) fn audited(mut self, out: Option<&std::path::Path>) -> Self {
        self.auditor = Auditor::begin(self.scenario, self.world, out);
        self
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Starts the subject, runs all phases, stops everything, and returns the end reason.
    pub(super) async fn conduct(&mut self, subject: SubjectPlan<'a>, mut load: LoadPlan) -> EndReason {
        self.clock = subject.clock.clone();
        self.truth = load.admission.as_ref().and_then(|(plan, _)| plan.truth());
        let stop_timeout = self.scenario.subject.upkeep().stop_timeout();
        let reason = match Box::pin(self.enter(subject, Load::scripted(load.script.take()))).await {
            Ok(ready) => match Box::pin(self.phases(&ready, load)).await {
                Ok(drained) => {
                    self.drained = Some(drained);
                    self.completed()
                }
                Err(halt) => self.halted(halt).await,
            },
            Err(error) => EndReason::SubjectNotReady { detail: format!("{error:#}"), waited_ms: None },
        };
        self.live.end();
        self.objects_so_far().await;
        self.audit();
        self.leave(stop_timeout).await;
        reason
    }

    /// Starts the subject and everything that observes it.
    async fn enter(&mut self, plan: SubjectPlan<'a>, load: Load) -> Result<Ready> {
        let mut timeline = Timeline::new(&self.scenario.faults).map_err(|(_, error)| error)?;
        let armed = timeline.armed_before();
        for index in &armed {
            self.tell_truth(*index, true);
            self.world.begin(kube_id(*index), &self.scenario.faults[*index])?;
        }
        self.world
            .await_writes(self.scenario.faults.iter().cloned().enumerate().map(|(at, fault)| (kube_id(at), fault)));
        let mut witness = plan.witness;
        let lines = witness.lines.take().map(|lines| (lines, plan.reporter.clone()));
        let log = Log::create(&self.record, lines)?;
        let (processes, handed) = plan.who.enter(&log).await?;
        let observers = Observers::start(&plan.clock, processes.pids(), plan.metrics.as_ref())?;
        let deadline = self.scenario.budgets.events.as_ref().and_then(|events| events.deadline);
        let mut events = Events::new(
            &self.world.plane,
            plan.feed,
            plan.clock,
            deadline.map(units::Span::as_millis),
            witness.commits.take(),
            self.scenario.sees().deleted,
            &self.scenario.faults,
        );
        let faults = Disturbances::begin(timeline, armed, &self.scenario.faults);
        events.faulted(faults.taints_commits);
        faults.active.iter().for_each(|index| events.arrivals().began(*index, 0));
        self.stage = Some(Stage {
            events,
            observers,
            subject: Subject {
                processes,
                crashes: Crashes::new(self.scenario),
                _handed: handed,
                log,
                launcher: plan.launcher,
                endpoints: plan.endpoints,
                receiver: plan.receiver,
                _redis: plan.redis,
                validators: plan.validators,
            },
            load,
            pacing: Pacing::of(self.scenario),
            faults,
            rows: Rows::begin(),
            witness: Witness { reported: plan.reported, _open: (plan.reporter, witness) },
        });
        Ok(plan.ready)
    }

    /// Runs the phases: readiness of the subject, creation of objects, warm-up, steady phase, drain.
    async fn phases(&mut self, ready: &Ready, load: LoadPlan) -> Result<Drained, Halt> {
        for (index, fault) in self.scenario.faults.iter().enumerate() {
            let row = self.fault_row(index, FaultEvent::Planned, 0, Some(describe(fault)));
            self.writer.fault(&row)?;
        }
        for row in Attacks::planned_rows(self.scenario) {
            self.writer.fault(&row)?;
        }
        for index in self.stage()?.faults.active.clone() {
            let row = self.fault_row(index, FaultEvent::Started, 0, None);
            self.writer.fault(&row)?;
        }
        let started = Instant::now();
        let deadline = started + self.scenario.subject.start_timeout.0;
        let plane = &self.world.plane;
        // If no audit log shows requests, a subject without a webhook is ready when it runs.
        let mut told = self.told.clone();
        let asked = move || told.requests_so_far(plane);
        self.beside(wait_until_ready(ready.clone(), deadline, asked)).await??;
        self.unasked = Unasked::of(self.scenario, ready, self.told.clone(), started);
        if let Some(scraper) = &self.stage()?.observers.metrics {
            let readable = scraper.readable(deadline);
            let read = self.beside(readable).await?;
            read.map_err(|why| {
                anyhow::anyhow!("its own metrics cannot be read: {why}; correct `metrics` in `subject` of the scenario")
            })?;
        }
        self.begin_siblings().await?;
        let api = self.world.api();
        // This is registered before it is made, so that an interruption removes it again.
        self.stage()?.load.will_unregister(load.registration.clone());
        let (load, begin) = self.beside(Box::pin(Load::start(load, api))).await??;
        self.clock.start(begin);
        let before = std::mem::replace(&mut self.stage()?.load, load);
        self.stage()?.load.go_on(before, begin);
        let phases = self.scenario.phases;
        self.until(begin + phases.warm_up.0).await?;
        self.enter_phase(Phase::Steady)?;
        self.until(begin + phases.loaded()).await?;
        self.end_attacks()?;
        // Faults undo their changes, and their hits are counted, before anything else ends.
        self.end_faults().await?;
        let stage = self.stage()?;
        // A row that is due while load stops would have no load, and the next row would have all of it at once.
        stage.rows.pause();
        let mut load = std::mem::take(&mut stage.load);
        let load = self
            .beside(async move {
                load.stop().await;
                load.end().await.map(|()| load)
            })
            .await??;
        self.stage()?.load = load;
        self.enter_phase(Phase::Drain)?;
        let from_ms = self.clock.now_ms();
        let drained_at = Instant::now() + phases.drain.0;
        self.begin_quiet().await?;
        self.until(drained_at).await?;
        // The subject's open resources are read once more before it is stopped.
        self.interval(false)?;
        self.last_objects(from_ms).await?;
        self.last_look().await?;
        let drained = Drained { from_ms, to_ms: self.clock.now_ms() };
        let unsure = "the harness cannot vouch for what the control plane stored";
        self.stage()?.load.confirm().await.context(unsure)?;
        // Watched events are read before they are compared.
        self.interval(false)?;
        let Self { stage, writer, holes, .. } = self;
        let Some(stage) = stage.as_mut() else { return Ok(drained) };
        stage.load.agreed().context(unsure)?;
        stage.events.wrote(stage.load.writes());
        let unseen = stage.events.confirm(writer).await;
        holes.extend(unseen.context("the harness cannot vouch for its own account of the commits")?);
        Ok(drained)
    }

    fn stage(&mut self) -> Result<&mut Stage<'a>> {
        self.stage.as_mut().context("the stage is empty")
    }

    async fn until(&mut self, end: Instant) -> Result<(), Halt> {
        self.beside(tokio::time::sleep_until(end.into())).await
    }

    /// Runs the main loop until `work` is done, and returns the result of `work`.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Halt> {
        let mut work = std::pin::pin!(work);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (world, waits, mut wake) = (self.world, waits_for_hits(self.scenario), Wake::new());
        let mut seen = Vec::with_capacity(OBSERVATIONS_MAX);
        loop {
            let Some(stage) = self.stage.as_mut() else {
                return Err(Halt::Broken(anyhow::anyhow!("the stage is empty")));
            };
            let Some(signals) = self.signals.as_mut() else {
                return Err(Halt::Broken(anyhow::anyhow!("the run was interrupted already")));
            };
            let due = stage.faults.timeline.next_ms().and_then(|at_ms| self.clock.instant(at_ms));
            tokio::select! {
                biased;
                name = signals.next() => return Err(Halt::Signal(name)),
                _ = tick.tick() => self.tick().await?,
                () = wake.next(world.struck(), due), if waits => self.faults()?,
                result = &mut work => return Ok(result),
                result = stage.events.committed(&mut self.writer) => result?,
                _ = stage.witness.reported.statements.recv_many(&mut seen, OBSERVATIONS_MAX) => {
                    stage.events.observed(&mut seen, &mut self.writer)?;
                }
                Some(sample) = stage.observers.resources.samples.recv() => {
                    stage.observers.sampled(&sample);
                    self.growth.sample(&sample);
                    self.writer.sample(&sample)?;
                }
                Some(row) = stage::metrics(&mut stage.observers.metrics) => {
                    self.growth.metrics(&row);
                    self.writer.metrics(&row)?;
                }
            }
        }
    }

    /// Performs the actions of the run whose times must be checked every few milliseconds.
    async fn tick(&mut self) -> Result<(), Halt> {
        let now_ms = self.clock.now_ms();
        self.processes(now_ms).await?;
        self.world.kills.running(self.stage()?.subject.processes.named_pids());
        if let Some(how) = self.world.plane.ended() {
            return Err(Halt::Broken(anyhow::anyhow!("the control plane is gone: {how}")));
        }
        if let Some(error) = self.world.troubles.take_broken() {
            return Err(Halt::Broken(error));
        }
        if let Some(error) = self.stage()?.load.refused() {
            return Err(Halt::Broken(error.into()));
        }
        match self.stage()?.load.gone() {
            Some(Gone::Lost(why)) => return Err(Halt::LoadLost(why)),
            Some(Gone::Broken(why)) => return Err(Halt::Broken(anyhow::anyhow!(why))),
            None => {}
        }
        // This runs before the clock as well: a subject that is busy with the first population makes more requests than
        // the control plane remembers.
        self.requests.write(&self.world.plane, &self.clock, &mut self.writer)?;
        let writer = &mut self.writer;
        let Some(stage) = self.stage.as_mut() else { return Ok(()) };
        stage.events.refused(&self.requests.take_refused());
        stage.events.settle(None, self.requests.newest(), writer)?;
        self.faults()?;
        if self.clock.runs() {
            self.unasked()?;
            self.canaries(now_ms)?;
            self.keep_up(now_ms)?;
            let stage = self.stage()?;
            let waiting = stage.events.pending();
            stage.pacing.iter_mut().for_each(|pacing| pacing.tick(now_ms, waiting));
            if stage.rows.is_due(now_ms) {
                self.interval(false)?;
            }
        }
        self.show(now_ms);
        Ok(())
    }

    /// Carries out the orders of faults.
    fn keep_up(&mut self, now_ms: u64) -> Result<(), Halt> {
        let Some(stage) = self.stage.as_mut() else { return Ok(()) };
        let before = stage.subject.processes.pids();
        self.world.troubles.obey(&mut stage.subject.owned(self.world, self.truth.as_ref()));
        stage.observers.follow(&before, stage.subject.processes.pids());
        let attacked = stage.load.attacks().map(|attacks| attacks.tick(now_ms)).unwrap_or_default();
        for row in attacked {
            self.writer.fault(&row)?;
        }
        Ok(())
    }

    /// Begins a phase. Closes the interval row of the old phase, so that no interval row belongs to two phases.
    fn enter_phase(&mut self, phase: Phase) -> Result<(), Halt> {
        self.interval(false)?;
        let stage = self.stage()?;
        if stage.rows.phase == Phase::WarmUp {
            stage.events.end_warm_up(stage.rows.warm_up_p99_us);
        }
        stage.rows.phase = phase;
        let found = stage.pacing.take().map(|pacing| pacing.settle(Instant::now()));
        if let Some(found) = found {
            self.live.say(&found.note());
            self.writer.churn_rate(found.rate.as_per_second(), found.note())?;
        }
        Ok(())
    }

    fn interval(&mut self, last: bool) -> Result<(), Halt> {
        self.interval_until(self.clock.now_ms(), last)
    }

    /// Closes an interval row that ended at `end_ms`. Later work of the harness does not count in the closed row.
    fn interval_until(&mut self, end_ms: u64, last: bool) -> Result<(), Halt> {
        let scenario = self.scenario;
        let told = self.told.take(&self.world.plane);
        let Some(stage) = self.stage.as_mut() else { return Ok(()) };
        let faults = stage.faults.active.iter().map(|index| fault_id(*index, &scenario.faults[*index])).collect();
        let seen = self.requests.take_follows();
        let follows = told.follows.or(seen);
        let alerts = stage.subject.receiver.as_ref().map(|receiver| receiver.take(last));
        let now = Now { end_ms, phase: stage.rows.phase, last, faults, told, follows, alerts };
        let tally = Arc::clone(&stage.witness.reported.tally);
        let (events, load, intervals) = (&mut stage.events, &mut stage.load, &mut stage.rows.intervals);
        let row = intervals.write(now, events, load, &tally, self.world, &mut self.writer)?;
        self.growth.interval(&row);
        stage.rows.closed(&row, end_ms);
        self.tell_room();
        Ok(())
    }

    /// Prints a message when the disk is full, and another message when the disk has room again.
    fn tell_room(&mut self) {
        let full = self.writer.rows_waiting() > 0;
        if full != std::mem::replace(&mut self.full, full) {
            self.live.say(if full {
                "the disk is full: rows of the record wait in memory, and will be lost unless space is freed soon"
            } else {
                "the disk has free space again"
            });
        }
    }

    fn live_say(&self, text: &str) {
        self.live.say(text);
    }

    fn show(&mut self, now_ms: u64) {
        let total_ms = crate::clock::millis(self.scenario.phases.total());
        let runs = self.clock.runs();
        let Some(stage) = self.stage.as_mut() else { return };
        let counts = stage.events.counts();
        let phase = match stage.rows.phase {
            _ if !runs => "starting",
            Phase::WarmUp => "warm-up",
            Phase::Steady => "steady",
            Phase::Drain => "drain",
        };
        let growth = self.growth.text().to_owned();
        let facts = Facts {
            growth,
            now_ms,
            total_ms,
            phase,
            commits: counts.commits,
            observations: counts.observations,
            missing: stage.events.pending(),
            late: counts.late + counts.late_ghost,
            requests: stage.rows.intervals.requests,
            admission_p99_us: stage.rows.intervals.latest_p99_us,
            wrong: stage.rows.intervals.wrong,
            rss_bytes: stage.observers.rss_bytes,
            faults: stage
                .faults
                .active
                .iter()
                .map(|index| self.scenario.faults[*index].name.as_str().to_owned())
                .collect(),
        };
        live::show(&mut self.live, &facts);
    }
}

/// Whether a phase or a fault of the scenario begins only after a hit of a fault.
fn waits_for_hits(scenario: &Scenario) -> bool {
    let steps = scenario.script.iter().flat_map(|script| &script.steps);
    scenario.faults.iter().any(|fault| fault.when.is_some()) || steps.into_iter().any(|step| step.when.is_some())
}
