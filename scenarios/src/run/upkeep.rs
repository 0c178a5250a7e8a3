//! Restarts of the subject, rotation of its certificates and changes of its trusted keys, under load.
//!
//! Owns the times of restarts, rotations and changes of keys, the processes that start or end, and the record rows that
//! prove each action. The main task of the run owns the running process. To replace the running process, this module
//! takes the old process and returns the new process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use loadgen::admission::Truth;
use reports::record::{FaultEvent, FaultRow};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::front::Front;
use super::manifest::{CERTIFICATES, RESTARTS, TRUSTED_KEYS};
use super::ready::{Asked, wait_until_ready};
use super::start::Again;
use super::world::World;
use crate::clock::millis;
use crate::scenario::{Certificates, Restarts, Scenario, TrustedKeys};
use crate::subject::{Launch, Log, Processes, Running, Stopped};

/// The planned restarts, rotations and changes of keys of a run.
pub(super) struct Upkeep<'a> {
    world: &'a World,
    again: Again<'a>,
    front: Option<Arc<Front>>,
    here: Option<SocketAddr>,
    health: Option<SocketAddr>,
    restarts: Option<Restarts>,
    restarted: u32,
    begun: u32,
    coming: Option<Coming>,
    going: JoinSet<Stopped>,
    certificates: Option<Certificates>,
    /// How many times faster the subject's own clock runs.
    rate: u32,
    rotated: u32,
    trusted_keys: Option<TrustedKeys>,
    changed: u32,
    /// The right answers to reviews, with which the load compares the webhook's answers.
    truth: Option<Arc<Truth>>,
    start_timeout: Duration,
    stop_timeout: Duration,
}

/// A started process that is not ready yet.
struct Coming {
    launch: Launch,
    subject: Running,
    address: Option<SocketAddr>,
    health: Option<SocketAddr>,
    ready: AbortOnDropHandle<Result<()>>,
}

impl<'a> Upkeep<'a> {
    pub(super) fn new(
        scenario: &Scenario,
        world: &'a World,
        again: Again<'a>,
        front: Option<Arc<Front>>,
        truth: Option<Arc<Truth>>,
    ) -> Self {
        let (here, health, upkeep) = (again.first, again.health, scenario.subject.upkeep());
        Self {
            world,
            again,
            front,
            here,
            health,
            restarts: upkeep.restarts,
            restarted: 0,
            begun: 0,
            coming: None,
            going: JoinSet::new(),
            certificates: upkeep.certificates,
            rate: scenario.clock_rate(),
            rotated: 0,
            trusted_keys: upkeep.trusted_keys,
            changed: 0,
            truth,
            start_timeout: scenario.subject.start_timeout.0,
            stop_timeout: upkeep.stop_timeout(),
        }
    }

    /// The address of the running process's health pages, if the harness knows it.
    pub(super) fn health(&self) -> Option<SocketAddr> {
        self.health
    }

    /// The record rows with the number of planned actions.
    pub(super) fn planned(&self) -> Vec<FaultRow> {
        let restarts = self.restarts.map(|restarts| {
            row(
                0,
                RESTARTS,
                FaultEvent::Planned,
                0,
                format!("{} restarts, one every {}", restarts.count, restarts.every),
            )
        });
        let certificates = self.certificates.map(|certificates| {
            let detail =
                format!("another certificate every {}, each valid for {}", certificates.every, certificates.valid);
            row(0, CERTIFICATES, FaultEvent::Planned, 0, detail)
        });
        let keys = self.trusted_keys.map(|keys| {
            let detail = format!("a trusted key is replaced every {}", keys.every);
            row(0, TRUSTED_KEYS, FaultEvent::Planned, 0, detail)
        });
        restarts.into_iter().chain(certificates).chain(keys).collect()
    }

    /// Performs the actions whose planned time is at or before `now_ms`; a new process replaces `subject`. Returns the
    /// rows of finished actions.
    pub(super) async fn tick(&mut self, now_ms: u64, subject: &mut Processes, log: &Log) -> Result<Vec<FaultRow>> {
        let mut rows = Vec::new();
        rows.extend(self.rotate(now_ms)?);
        rows.extend(self.change_keys(now_ms)?);
        while let Some(stopped) = self.going.try_join_next() {
            if matches!(stopped, Ok(Stopped::Killed)) {
                let detail =
                    format!("a process did not exit within {:?} after SIGTERM and was killed", self.stop_timeout);
                rows.push(row(now_ms, RESTARTS, FaultEvent::Hit, self.restarted.into(), detail));
            }
        }
        if let Some(coming) = &mut self.coming
            && let Some(status) = coming.subject.exited()
        {
            let said = coming.subject.last_words().await;
            anyhow::bail!("the process that was to take over exited ({status}). Its last words: {said}");
        }
        match self.coming.take_if(|coming| coming.ready.is_finished()) {
            Some(coming) => rows.push(self.replace(now_ms, subject, coming).await?),
            None if self.coming.is_none() => rows.extend(self.begin(now_ms, log)?),
            None => {}
        }
        Ok(rows)
    }

    /// Ends the actions, because the load is over; no further action begins.
    pub(super) fn finish(&mut self, now_ms: u64) -> Result<Vec<FaultRow>> {
        self.coming = None;
        let mut rows = Vec::new();
        if let Some(restarts) = self.restarts.take() {
            anyhow::ensure!(
                self.restarted == restarts.count,
                "only {} of {} restarts were over when load ended: make `phases.steady` longer, or `restarts.every` shorter",
                self.restarted,
                restarts.count
            );
            rows.push(row(now_ms, RESTARTS, FaultEvent::Ended, self.restarted.into(), String::new()));
        }
        if self.certificates.take().is_some() {
            rows.push(row(now_ms, CERTIFICATES, FaultEvent::Ended, self.rotated.into(), String::new()));
        }
        if self.trusted_keys.take().is_some() {
            rows.push(row(now_ms, TRUSTED_KEYS, FaultEvent::Ended, self.changed.into(), String::new()));
        }
        Ok(rows)
    }

    /// Waits for processes that are ending.
    pub(super) async fn leave(&mut self) {
        if let Some(coming) = &mut self.coming {
            coming.subject.stop(Duration::ZERO).await;
        }
        while self.going.join_next().await.is_some() {}
    }

    fn rotate(&mut self, now_ms: u64) -> Result<Option<FaultRow>> {
        let Some(certificates) = self.certificates else { return Ok(None) };
        // The interval counts on the subject's clock, like the validity of certificates.
        let due = certificates.every.0 * (self.rotated + 1) / self.rate;
        if now_ms < millis(due) {
            return Ok(None);
        }
        self.world
            .rotate_certificate(Some(certificates.valid.0))
            .context("failed to replace the subject's certificate")?;
        self.rotated += 1;
        let event = FaultEvent::Hit;
        Ok(Some(row(
            now_ms,
            CERTIFICATES,
            event,
            self.rotated.into(),
            "the certificate files were replaced".to_owned(),
        )))
    }

    fn change_keys(&mut self, now_ms: u64) -> Result<Option<FaultRow>> {
        let (Some(keys), Some(trusted)) = (self.trusted_keys, &self.world.trusted) else { return Ok(None) };
        if now_ms < millis(keys.every.0 * (self.changed + 1)) {
            return Ok(None);
        }
        trusted.change(&self.world.images, self.truth.as_deref())?;
        self.changed += 1;
        let detail = "a trusted key was replaced".to_owned();
        Ok(Some(row(now_ms, TRUSTED_KEYS, FaultEvent::Hit, self.changed.into(), detail)))
    }

    /// Starts the next process of the subject, if the planned time has come.
    fn begin(&mut self, now_ms: u64, log: &Log) -> Result<Option<FaultRow>> {
        let Some(restarts) = self.restarts else { return Ok(None) };
        if restarts.due(self.begun).is_none_or(|due| now_ms < millis(due)) {
            return Ok(None);
        }
        let (start, ready, address) = self.again.launch(self.world)?;
        let launch = start.launches().first().cloned().context("the command of the subject is not known")?;
        let subject = launch.start(log.clone()).context("failed to start the subject again")?;
        let deadline = Instant::now() + self.start_timeout;
        let health = ready.health();
        // The old process has made all requests already, so those of the new one cannot be recognized.
        let ready = async move { wait_until_ready(ready, deadline, || Asked::Judged).await };
        let ready = AbortOnDropHandle::new(tokio::spawn(ready));
        self.coming = Some(Coming { launch, subject, address, health, ready });
        self.begun += 1;
        let first = (self.begun == 1).then(|| row(now_ms, RESTARTS, FaultEvent::Started, 0, String::new()));
        Ok(first)
    }

    /// Replaces the old process by the ready new one: new connections go to the new process, and the old process ends.
    async fn replace(&mut self, now_ms: u64, subject: &mut Processes, coming: Coming) -> Result<FaultRow> {
        let Coming { launch, subject: new, address, health, ready } = coming;
        ready.await.context("the wait for the new process broke")??;
        let pid = new.pid();
        let mut old = subject.replace(launch, new).context("there is no process that another could replace")?;
        let was = std::mem::replace(&mut self.here, address);
        self.health = health;
        if let (Some(front), Some(address)) = (&self.front, address) {
            front.add(address);
        }
        let (front, stop_timeout) = (self.front.clone(), self.stop_timeout);
        let lag = self.restarts.map_or(Duration::ZERO, |restarts| restarts.lag.0);
        self.going.spawn(async move {
            let unlisted = async {
                tokio::time::sleep(lag).await;
                if let (Some(front), Some(was)) = (front, was) {
                    front.remove(was);
                }
            };
            tokio::join!(old.stop(stop_timeout), unlisted).0
        });
        self.restarted += 1;
        let detail = format!("process {pid} took over");
        Ok(row(now_ms, RESTARTS, FaultEvent::Hit, self.restarted.into(), detail))
    }
}

fn row(t_ms: u64, name: &str, event: FaultEvent, hits: u64, detail: String) -> FaultRow {
    let detail = (!detail.is_empty()).then_some(detail);
    FaultRow { t_ms, id: name.to_owned(), name: name.to_owned(), event, hits, ok: None, detail }
}
