//! The steps of a run before the subject starts: world, witness, subject placed, load planned, record.
//!
//! Each step takes the step before it and owns what it opened, so a wrong order does not compile. An error drops the
//! steps so far, which ends what they started.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use loadgen::calls::{Plan, Target};
use mock_faults::Name;

use super::wiring::{Endpoints, Launcher, command_line, digest, port, reviews, who, with_port};
use super::{Prepared, SubjectPlan, directory, load_plan, metrics, metrics_port, mounted, script};
use crate::clock::Clock;
use crate::private;
use crate::run::alerts::Receiver;
use crate::run::calls::{self, ApiAccess};
use crate::run::deploy::{Deployed, Watched};
use crate::run::drift::Drifts;
use crate::run::feed::Feed;
use crate::run::load::LoadPlan;
use crate::run::load_workers::WaitingWorkers;
use crate::run::ready::Ready;
use crate::run::redis::Redis;
use crate::run::validators::Validators;
use crate::run::world::World;
use crate::run::{Options, manifest, timeline};
use crate::scenario::{Scenario, Start};
use crate::witness::{self, Reported, Reporter, Scene};

/// The world, and the witness that observes what the subject sees of it.
pub(super) struct Witnessed<'a> {
    options: &'a Options,
    world: World,
    clock: Clock,
    reporter: Reporter,
    reported: Reported,
    witness: witness::Open,
    /// The port of the subject's metrics, if the scenario leaves the choice to the harness.
    metrics: Option<u16>,
}

/// The subject immediately before its start, with everything that it calls.
pub(super) struct Placed<'a> {
    before: Witnessed<'a>,
    launcher: Launcher<'a>,
    endpoints: Endpoints,
    start: Start,
    ready: Ready,
    deployed: Option<Deployed>,
    watched: Option<Watched>,
    calls: Option<(Plan, Target)>,
    receiver: Option<Arc<Receiver>>,
    redis: Option<Redis>,
    validators: Validators,
}

/// The subject with the load that will be sent to it.
pub(super) struct Planned<'a> {
    placed: Placed<'a>,
    load: LoadPlan,
}

impl<'a> Witnessed<'a> {
    pub(super) async fn open(options: &'a Options, world: World) -> Result<Self> {
        let scenario = &options.source.scenario;
        let clock = Clock::default();
        let (reporter, reported) = witness::channel(clock.clone());
        let metrics = metrics_port(scenario)?;
        let url = scenario.subject.metrics.as_ref().and_then(|metrics| metrics.url.as_deref());
        let metrics_url = url.map(|url| with_port(url, metrics));
        let scene = Scene { api: world.api(), about: scenario.about(), metrics_url, machine: world.plane.machine() };
        let witness = scenario.subject.witness.open(&reporter, &scene).await.context("failed to start the witness")?;
        Ok(Self { options, world, clock, reporter, reported, witness, metrics })
    }

    fn scenario(&self) -> &'a Scenario {
        &self.options.source.scenario
    }

    /// Opens everything that the subject calls, and prepares the subject's processes or Pods.
    pub(super) async fn place(self) -> Result<Placed<'a>> {
        let (options, scenario, world) = (self.options, self.scenario(), &self.world);
        let machine = world.plane.machine();
        let door = ApiAccess::make(options, world)?;
        let calls = calls::plan(options, door.as_ref())?;
        let receiver = Receiver::open(scenario.alerts.as_ref(), machine).await?.map(Arc::new);
        let redis = Redis::open(scenario.shared_cache).await?;
        let validators = Validators::open(scenario).await?;
        let launcher = Launcher {
            options,
            variables: self.witness.variables.clone(),
            metrics: self.metrics,
            door,
            receiver: receiver.clone(),
            redis: redis.as_ref().map(Redis::address),
            validators: validators.others().to_vec(),
            mounted: mounted(scenario, world).await?,
        };
        let (mut start, ready, webhook) = launcher.launch(world)?;
        start.launches().iter().try_for_each(crate::subject::Launch::check)?;
        let deployed = launcher.deploy(world, &mut start).await?;
        let watched = launcher.watch(world).await?;
        world.trouble(deployed.as_ref(), redis.as_ref(), Drifts::of(scenario, world.api(), self.clock.clone()));
        let health = ready.health();
        let (ready, webhook, health) = if let Some(deployed) = &deployed {
            (Ready::Rollout(Arc::clone(&deployed.rollout)), deployed.webhook, deployed.pages)
        } else {
            (ready, webhook, health)
        };
        let endpoints = Endpoints::open(scenario, machine, webhook, health).await?;
        let is_told = scenario.subject.profile().ready.is_some() || scenario.subject.watches_nothing();
        let ready = if timeline::begins_before(&scenario.faults) && !is_told {
            // The subject's own report of readiness may wait for the very list that a fault holds back.
            let port = port(scenario, webhook)?.filter(|_| scenario.admission.is_some());
            Ready::FirstRequest { webhook: port, any: false }
        } else {
            ready
        };
        let before = self;
        Ok(Placed { before, launcher, endpoints, start, ready, deployed, watched, calls, receiver, redis, validators })
    }
}

impl<'a> Placed<'a> {
    /// Plans the load, but creates no object yet.
    pub(super) fn plan(self) -> Result<Planned<'a>> {
        let Witnessed { options, world, .. } = &self.before;
        let reviews = reviews(options, world, self.endpoints.reviews())?;
        let load = load_plan(self.before.scenario(), world, reviews, self.receiver.as_deref())?;
        Ok(Planned { placed: self, load })
    }
}

impl<'a> Planned<'a> {
    /// Opens the record and the feed of commits, and creates the objects that exist before the subject.
    pub(super) async fn record(self) -> Result<Prepared<'a>> {
        let Self { placed, mut load } = self;
        let Placed { before, launcher, endpoints, start, ready, deployed, watched, calls, receiver, redis, validators } =
            placed;
        let scenario = before.scenario();
        let Witnessed { options, world, clock, reporter, reported, witness, metrics: port } = before;
        let digest = digest(options, &start).await?;
        let metrics = metrics(scenario, endpoints.health, port);
        let mut manifest =
            manifest::manifest(options, &command_line(start.launches()), digest, &load, &world.plane, metrics.clone());
        let directory: PathBuf = match &options.run_dir {
            Some(named) => {
                private::folder(named, "--run-dir")?;
                named.clone()
            }
            None => directory(&options.runs, &mut manifest)?,
        };
        let (judged, goes_back) = (scenario.judged_resources(), scenario.faults.has(Name::Rewind));
        let feed = Feed::follow(&world.plane, world.api(), &judged, scenario.looks(), goes_back).await?;
        // This comes after the feed, so that the first objects are commits as well, and before the subject, which has
        // to find them.
        load.script = script(scenario, &world).await?;
        load.calls = calls::filled(calls, &world).await?;
        load.workers = WaitingWorkers::open(scenario, &world).await?;
        let who = who(&world, &launcher, start, deployed, watched)?;
        let subject = SubjectPlan {
            who,
            ready,
            reported,
            reporter,
            witness,
            clock,
            feed,
            launcher,
            endpoints,
            metrics,
            receiver,
            redis,
            validators,
        };
        Ok(Prepared { directory, manifest, world, subject, load })
    }
}
