//! A subject on its feet in a world of its own, without a run: no ledger, no faults, no verdict. For what compares two of them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use loadgen::admission::{Config, Image, Plan, Target};
use loadgen::churn::Churn;
use tokio_util::task::AbortOnDropHandle;

mod lags;

use self::lags::{Lags, Seen};
use super::Options;
use super::attach::Who;
use super::payloads::{self, Planned};
use super::ready::wait_until_ready;
use super::start::{self, Prepared};
use super::world::World;
use crate::observer::Usage;
use crate::scenario::Scenario;
use crate::subject::{Log, Running};
use crate::witness::{Ear, Open};

/// A subject that is ready, and its world.
pub(crate) struct Stand<'a> {
    scenario: &'a Scenario,
    world: World,
    subject: Running,
    target: Target,
    /// The SHA-256 of its program.
    pub(crate) digest: Option<String>,
    /// What of the commits it has seen.
    lags: Lags,
    /// Keeps the witness listening, and its channel from filling up.
    _witness: (Ear, Open, AbortOnDropHandle<()>),
}

/// What a while of events cost.
pub(crate) struct Events {
    pub(crate) seen: Seen,
    pub(crate) cpu_ns: u64,
}

impl<'a> Stand<'a> {
    /// Starts world and subject, and waits until that is ready. What it logs goes to the folder that the options name.
    pub(crate) async fn up(options: &'a Options) -> Result<Self> {
        let scenario = &options.source.scenario;
        let Prepared { directory, manifest, world, subject: plan, load } = start::prepare(options).await?;
        let (Some((Planned::Direct(_), target)), None) = (load.admission, load.registration) else {
            world.stop().await;
            bail!(
                "{}: a gate sends reviews to the webhook itself: write `admission` without `through: apiserver`, and no `install`",
                options.source.origin
            );
        };
        let Who::Started(launches) = plan.who else {
            world.stop().await;
            bail!("{}: a gate starts both builds itself, and this subject runs already", options.source.origin);
        };
        let [launch] = launches.as_slice() else {
            world.stop().await;
            bail!(
                "{}: a gate compares one program with one: write `command` instead of `commands`",
                options.source.origin
            );
        };
        let mut witness = plan.witness;
        let lines = witness.lines.take().map(|lines| (lines, plan.ear.clone()));
        let lags = Lags::default();
        let listens = AbortOnDropHandle::new(tokio::spawn(lags::follow(plan.feed, plan.heard, lags.clone())));
        let started = Log::create(&directory, lines).map_err(anyhow::Error::from);
        let subject = match started.and_then(|log| Ok(launch.start(log)?)) {
            Ok(subject) => subject,
            Err(error) => {
                world.stop().await;
                return Err(error);
            }
        };
        let mut stand = Self {
            scenario,
            world,
            subject,
            target,
            digest: manifest.subject.digest,
            lags,
            _witness: (plan.ear, witness, listens),
        };
        match stand.ready(plan.ready).await {
            Ok(()) => Ok(stand),
            Err(error) => {
                let last_words = stand.subject.last_words().await;
                stand.down().await;
                bail!("{error:#}. Its last words: {last_words}")
            }
        }
    }

    async fn ready(&mut self, ready: super::ready::Ready) -> Result<()> {
        let deadline = Instant::now() + self.scenario.subject.start_timeout.0;
        let (plane, judged, subject) = (&self.world.plane, self.scenario.judged(), &mut self.subject);
        let exits = async {
            loop {
                if let Some(status) = subject.exited() {
                    return status;
                }
                tokio::time::sleep(EXIT_POLL).await;
            }
        };
        tokio::select! {
            waited = wait_until_ready(ready, deadline, || plane.asked(plane.subject(), &judged)) => waited,
            status = exits => bail!("it exited before it was ready ({status})"),
        }
    }

    /// Reviews for it: this load with this seed, over the images of its registry.
    pub(crate) fn plan(&self, config: &Config, seed: u64, length: Duration) -> Result<Plan> {
        if self.scenario.subject.is_webhook_only() {
            return Plan::for_any_webhook(config, seed, length).context("failed to plan the load");
        }
        let image =
            |image: &mock_registry::Image| Image { reference: image.reference.clone(), digest: image.digest.clone() };
        let images: Vec<Image> = self.world.images.iter().map(image).collect();
        Plan::build(config, seed, length, &images).context("failed to plan the load")
    }

    /// The fingerprint of these reviews. Where the registry listens is another place for each subject, and is left out of it.
    pub(crate) fn fingerprint(&self, config: &Config, seed: u64, length: Duration) -> Result<String> {
        if self.scenario.subject.is_webhook_only() {
            return Ok(self.plan(config, seed, length)?.fingerprint());
        }
        let host = self.world.registry.host();
        let image = |image: &mock_registry::Image| Image {
            reference: image.reference.replacen(host, payloads::HOST, 1),
            digest: image.digest.clone(),
        };
        let images: Vec<Image> = self.world.images.iter().map(image).collect();
        Ok(Plan::build(config, seed, length, &images).context("failed to plan the load")?.fingerprint())
    }

    /// Churns objects for so long, removes them, and tells what the subject saw of it; none where the scenario has no churn, or nothing is seen.
    pub(crate) async fn events(&self, seed: u64, length: Duration) -> Result<Option<Events>> {
        if self.scenario.churn.is_empty() {
            return Ok(None);
        }
        let plans =
            loadgen::churn::Plan::all(&self.scenario.churn, seed, length).context("failed to plan the churn")?;
        let usage = || Usage::read(self.pid()).context("the subject has no process any more");
        self.lags.lock().forget();
        self.lags.lock().take();
        let before = usage()?;
        let mut all = Vec::new();
        for plan in plans {
            all.push(Churn::fill(plan, &self.world.api()).await.context("failed to start the churn")?);
        }
        let begin = Instant::now();
        for churn in &mut all {
            churn.go(begin).context("failed to start the churn")?;
        }
        tokio::time::sleep_until((begin + length).into()).await;
        for churn in &mut all {
            churn.stop(SETTLE_MAX).await.context("failed to stop the churn")?;
            churn.empty().await.context("failed to delete what the churn made")?;
        }
        let until = Instant::now() + SETTLE_MAX;
        let mut seen = self.lags.lock().take();
        while seen.waiting > 0 && Instant::now() < until {
            tokio::time::sleep(EXIT_POLL).await;
            let mut more = self.lags.lock().take();
            let idle = more.events == 0;
            seen.events += more.events;
            seen.lags.append(&mut more.lags);
            seen.waiting = more.waiting;
            if idle && seen.waiting > 0 && seen.events > 0 {
                // Versions that it skipped are no events, and never come.
                break;
            }
        }
        let cpu_ns = usage()?.cpu_ns_since(&before);
        Ok((seen.events > 0).then_some(Events { seen, cpu_ns }))
    }

    /// Where it answers them.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The root of its processes.
    pub(crate) fn pid(&self) -> u32 {
        self.subject.pid()
    }

    /// How it has exited, with its last words, if it has.
    pub(crate) async fn exited(&mut self) -> Option<String> {
        let status = self.subject.exited()?;
        Some(format!("{status}. Its last words: {}", self.subject.last_words().await))
    }

    /// Stops it, and takes its world down.
    pub(crate) async fn down(mut self) {
        self.subject.stop(self.scenario.subject.stop_timeout.0).await;
        self.world.stop().await;
    }
}

/// How long the end of the churn, and the subject after it, may take.
const SETTLE_MAX: Duration = Duration::from_secs(3);
/// How often a subject that is starting is looked at.
const EXIT_POLL: Duration = Duration::from_millis(50);
