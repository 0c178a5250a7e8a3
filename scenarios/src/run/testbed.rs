//! A running subject with its control plane, for measurements without run record, faults and verdict. A comparison uses
//! two testbeds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use loadgen::admission::{Config, Image, Plan, Target};
use loadgen::churn::{self, Churn};
use reports::ledger;
use reports::record::Sees;
use tokio_util::task::AbortOnDropHandle;

mod account;

use self::account::{Account, ChurnResult, Hole, Shared};
use super::Options;
use super::attach::Who;
use super::audited::AuditedRequests;
use super::claims::Claims;
use super::install;
use super::payloads::{self, Planned};
use super::ready::wait_until_ready;
use super::registration::Registration;
use super::start::{self, Prepared};
use super::validators::Validators;
use super::world::World;
use crate::observer::Usage;
use crate::scenario::Scenario;
use crate::subject::{Log, Running};
use crate::witness::{Open, Reporter};

/// A ready subject, with its control plane and registry.
pub(crate) struct Testbed<'a> {
    scenario: &'a Scenario,
    world: World,
    subject: Running,
    /// The subject's endpoint for reviews; `None` if it gets no reviews.
    target: Option<Target>,
    pub(crate) digest: Option<String>,
    /// The commits that the subject has seen.
    account: Shared,
    /// Keeps the proxies of the subject's validators (the processes that verify signatures) running.
    _validators: Validators,
    /// Keeps the witness listening, and its channel from filling up.
    _witness: (Reporter, Open, AbortOnDropHandle<()>),
}

/// Settings of a period of churn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct While {
    /// The seed of the changes; equal seeds give equal changes.
    pub(crate) seed: u64,
    /// Time from the start of the churn until the measurement of lags begins.
    pub(crate) settle: Duration,
    /// Length of the churn, without creating and deleting the population.
    pub(crate) length: Duration,
    /// Longest wait until the churn ends and the subject has seen all versions.
    pub(crate) patience: Duration,
}

/// Work, cost and observations of one period of churn.
pub(crate) struct Events {
    /// Number of changes by the harness; each change is an event for watchers.
    pub(crate) changes: u64,
    /// Number of distinct changed objects.
    pub(crate) objects: u64,
    /// The share of versions that were missed, late or out of order; `None` if the witness cannot observe such
    /// mistakes.
    pub(crate) failed: Option<f64>,
    /// Times from commit to observation.
    pub(crate) lags: Vec<Duration>,
    /// How late the harness itself made its changes, at the 99th percentile.
    pub(crate) lateness_us: u64,
    /// Bytes between the subject and the control plane, in both directions; `None` if they are not counted.
    pub(crate) bytes: Option<u64>,
    /// Changes that the control plane refused, with an example of its message.
    pub(crate) refused: (u64, Option<String>),
    pub(crate) cpu_ns: u64,
}

impl<'a> Testbed<'a> {
    /// Starts control plane and subject, and waits until the subject is ready. The subject's log goes to the folder in
    /// the options.
    pub(crate) async fn up(options: &'a Options) -> Result<Self> {
        let scenario = &options.source.scenario;
        if scenario.admission.as_ref().is_some_and(|config| config.workers.is_some()) {
            bail!("{}: a gate sends by itself: leave `admission.workers` out", options.source.origin);
        }
        let Prepared { directory, manifest, world, subject: plan, load } = start::prepare(options).await?;
        let target = match load.admission {
            Some((Planned::Direct(_), target)) => Some(target),
            None => None,
            Some(_) => {
                world.stop().await;
                bail!(
                    "{}: a gate sends reviews to the webhook itself: write `admission` without `through: apiserver`",
                    options.source.origin
                );
            }
        };
        // Webhooks for images do not review churn.
        let registration = load.registration.filter(Registration::is_own);
        let Who::Started(launches) = plan.who else {
            world.stop().await;
            bail!("{}: a gate starts both builds itself, and this subject runs already", options.source.origin);
        };
        let [launch] = launches.as_slice() else {
            world.stop().await;
            bail!(
                "{}: a gate compares one program with one: write `command: [program, …]` instead of `processes`",
                options.source.origin
            );
        };
        let mut witness = plan.witness;
        let lines = witness.lines.take().map(|lines| (lines, plan.reporter.clone()));
        plan.clock.start(Instant::now());
        let account = account_of(scenario, &plan.feed, witness.commits.take(), plan.clock.clone());
        let follow = account::follow(plan.feed, plan.reported, Shared::clone(&account));
        let listens = AbortOnDropHandle::new(tokio::spawn(follow));
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
            account,
            _validators: plan.validators,
            _witness: (plan.reporter, witness, listens),
        };
        let ready = match stand.ready(plan.ready).await {
            Ok(()) => stand.register(registration.as_ref()).await,
            Err(error) => Err(error),
        };
        match ready {
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
        let (plane, mut told, subject) = (&self.world.plane, AuditedRequests::new(self.scenario), &mut self.subject);
        let exits = async {
            loop {
                if let Some(status) = subject.exited() {
                    return status;
                }
                tokio::time::sleep(EXIT_POLL).await;
            }
        };
        tokio::select! {
            waited = wait_until_ready(ready, deadline, || told.requests_so_far(plane)) => waited,
            status = exits => bail!("it exited before it was ready ({status})"),
        }
    }

    /// Registers the subject's own webhooks, so that they review the churn.
    async fn register(&self, registration: Option<&Registration>) -> Result<()> {
        let Some(registration) = registration else { return Ok(()) };
        let api = self.world.api();
        registration.install(&install::Api::from(&api), None).await
    }

    /// The plan of reviews with this load and seed, and with the images of the testbed's registry.
    pub(crate) async fn plan(&self, config: &Config, seed: u64, length: Duration) -> Result<Plan> {
        let failed = "failed to plan the load";
        if self.scenario.subject.has_own_policy() {
            return self.prepared(Plan::for_any_webhook(config, seed, length).context(failed)?).await;
        }
        let images: Vec<Image> = self.world.images.iter().map(super::keys::image).collect();
        self.prepared(Plan::build(config, seed, length, &images).context(failed)?).await
    }

    /// The plan of reviews, adjusted if webhooks change objects.
    async fn prepared(&self, plan: Plan) -> Result<Plan> {
        plan.settled(self.target()?).await.context("failed to plan the load")
    }

    /// Whether the right answers to the reviews are known.
    pub(crate) fn is_judged(&self, config: &Config) -> bool {
        config.objects.iter().any(|own| !own.made) || !self.scenario.subject.has_own_policy()
    }

    /// The fingerprint of the reviews with this load and seed. The registry's address is left out, because it differs
    /// between subjects.
    pub(crate) fn fingerprint(&self, config: &Config, seed: u64, length: Duration) -> Result<String> {
        if self.scenario.subject.has_own_policy() {
            let plan = Plan::for_any_webhook(config, seed, length).context("failed to plan the load")?;
            return Ok(plan.fingerprint());
        }
        let host = self.world.registry.host();
        let image = |image: &mock_registry::Image| {
            let reference = image.reference.replacen(host, payloads::HOST, 1);
            Image { reference, ..super::keys::image(image) }
        };
        let images: Vec<Image> = self.world.images.iter().map(image).collect();
        Ok(Plan::build(config, seed, length, &images).context("failed to plan the load")?.fingerprint())
    }

    /// Runs a period of churn and removes its objects. Returns the work and the subject's observations; `None` if the
    /// scenario has no churn.
    pub(crate) async fn events(&self, how: While) -> Result<Option<Events>> {
        if self.scenario.churn.is_empty() {
            return Ok(None);
        }
        let plans = churns(self.scenario, how)?;
        let usage = || Usage::read(self.pid()).context("the subject no longer has a process");
        self.account.lock().begin();
        let (before, bytes) = (usage()?, self.world.bytes());
        let mut all = Vec::new();
        for plan in plans {
            all.push(Churn::fill(plan, &self.world.api()).await.context("failed to start the churn")?);
        }
        // The work for objects that were just created, or are about to be deleted, depends on their lifetime, so all of
        // it is done first.
        self.settled(how.patience).await;
        let filled: u64 = all.iter().map(|churn| churn.take().objects_total).sum();
        let begin = Instant::now();
        for churn in &mut all {
            churn.go(begin).context("failed to start the churn")?;
        }
        tokio::time::sleep_until((begin + how.settle).into()).await;
        self.account.lock().measure(true);
        tokio::time::sleep_until((begin + how.length).into()).await;
        let mut emptied = 0;
        for churn in &mut all {
            churn.stop(how.patience).await.context("failed to stop the churn")?;
        }
        self.account.lock().measure(false);
        self.settled(how.patience).await;
        let intervals: Vec<churn::Interval> = all.iter().map(Churn::take).collect();
        let made = churn::Interval::of_all(&intervals).unwrap_or_default();
        for churn in &mut all {
            emptied += churn.empty().await.context("failed to delete what the churn made")?;
        }
        self.settled(how.patience).await;
        let cpu_ns = usage()?.cpu_ns_since(&before);
        let ChurnResult { counts, lags, broken } = self.account.lock().finish(self.holes());
        if let Some(why) = broken {
            bail!("the subject's observations can no longer be read: {why}");
        }
        let lateness_us = if made.lateness.is_empty() { 0 } else { made.lateness.value_at_quantile(0.99) };
        Ok(Some(Events {
            changes: filled + made.created + made.updated + made.deleted + emptied,
            objects: made.objects_total,
            failed: failed(&counts, self.scenario.sees()),
            lags,
            lateness_us,
            bytes: self.world.bytes().zip(bytes).map(|(now, before)| now - before),
            refused: (made.failed, made.examples.first().cloned()),
            cpu_ns,
        }))
    }

    /// The fingerprint of the churn; `None` without churn.
    pub(crate) fn fingerprint_of_events(&self, how: While) -> Result<Option<String>> {
        let plans = churns(self.scenario, how)?;
        let prints: Vec<String> = plans.iter().map(churn::Plan::fingerprint).collect();
        Ok((!prints.is_empty()).then(|| prints.join("-")))
    }

    /// Waits until all versions are seen and the traffic with the control plane has stopped, or until there is no more
    /// progress.
    async fn settled(&self, patience: Duration) {
        let now = Instant::now();
        let (until, mut heard, mut moved) = (now + patience, (0, now), (None, now));
        while Instant::now() < until {
            let ((pending, observations), bytes) = (self.account.lock().look(), self.world.bytes());
            if observations != heard.0 {
                heard = (observations, Instant::now());
            }
            if bytes != moved.0 {
                moved = (bytes, Instant::now());
            }
            let is_quiet = bytes.is_none() || moved.1.elapsed() >= QUIET;
            if is_quiet && (pending == 0 || heard.1.elapsed() > SILENCE_MAX) {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Gaps in the subject's watch streams that a new list has closed since the last call.
    fn holes(&self) -> Vec<Hole> {
        let Some(mock) = self.world.plane.mock() else { return Vec::new() };
        let hole = |gap: mock_kube::Gap| {
            let [after, through] = [gap.after, gap.through].map(facts::Order::of_numbered);
            Hole { resource: gap.resource.to_string(), after, through }
        };
        mock.server.gaps(self.world.plane.subject()).into_iter().map(hole).collect()
    }

    pub(crate) fn target(&self) -> Result<&Target> {
        self.target.as_ref().context("it is sent no reviews")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.subject.pid()
    }

    /// How the subject exited, with its last output; `None` while it runs.
    pub(crate) async fn exited(&mut self) -> Option<String> {
        let status = self.subject.exited()?;
        Some(format!("{status}. Its last words: {}", self.subject.last_words().await))
    }

    pub(crate) async fn down(mut self) {
        self.subject.stop(self.scenario.subject.upkeep().stop_timeout()).await;
        self.world.stop().await;
    }
}

/// Interval of checks whether a starting subject has exited.
const EXIT_POLL: Duration = Duration::from_millis(50);
/// Interval of checks whether a busy subject has seen all versions.
const POLL: Duration = Duration::from_millis(20);
/// A subject without traffic for this time counts as finished.
const QUIET: Duration = Duration::from_millis(100);
/// If the witness shows nothing for this time after the last change, no more observations are expected.
const SILENCE_MAX: Duration = Duration::from_secs(1);

fn churns(scenario: &Scenario, how: While) -> Result<Vec<churn::Plan>> {
    churn::Plan::all(&scenario.churn, how.seed, how.length).context("failed to plan the churn")
}

fn account_of(
    scenario: &Scenario,
    feed: &super::feed::Feed,
    commits: Option<Box<dyn crate::witness::Commits>>,
    clock: crate::clock::Clock,
) -> Shared {
    let deadline = scenario.budgets.events.as_ref().and_then(|events| events.deadline);
    let config = ledger::Config {
        deadline_ms: deadline.map_or(ledger::DEADLINE_MS, units::Span::as_millis),
        numeric_revisions: feed.is_numeric(),
        deletions_observable: scenario.sees().deleted,
        ..ledger::Config::default()
    };
    Account::new(config, Claims::of(commits), clock, feed.is_at_hand())
}

/// The share of versions that were missed, late or out of order. Observations without a commit are left out, because
/// they may be late reports of an earlier period.
fn failed(counts: &reports::record::EventCounts, sees: Sees) -> Option<f64> {
    let told = sees != Sees::NOTHING && counts.commits > 0;
    let lost = counts.missed + counts.ghost + counts.identity_swap + counts.late + counts.late_ghost;
    told.then(|| (lost + counts.regressed + counts.resurrected) as f64 / counts.commits as f64)
}
