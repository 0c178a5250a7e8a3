//! Load, churn and script of one run: started together, read together, stopped together.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use loadgen::admission::{self, through};
use loadgen::calls;
use loadgen::churn::{self, Api, Canaries, Churn, Writes};
use loadgen::script::{self, Script};
use reports::record::{AdmissionRow, CallsRow, ChurnRow, Quantiles, StoredRow, WebhookRow, Writer, tag};

use super::attacks::{AttackPlan, Attacks};
use super::crew::Crew;
use super::install;
use super::payloads::Planned;
use super::registration::Registration;
use crate::load::hlog;
use crate::load::workers::{Beside, Gone};

/// Requests that are under way when load stops may take so long to come back: kube-apiserver's own longest timeout.
const IN_FLIGHT_DRAIN: Duration = Duration::from_secs(30);
/// Error texts that a live line or report shows.
const EXAMPLES_MAX: usize = 5;

/// What load does.
pub(super) struct LoadPlan {
    pub(super) admission: Option<(Planned, admission::Target)>,
    /// Who sends it, if not this process.
    pub(super) crew: Option<Crew>,
    /// Attacks beside it.
    pub(super) attacks: Option<AttackPlan>,
    /// Made when the subject is ready, before anything of the load.
    pub(super) registration: Option<Registration>,
    /// One for each section.
    pub(super) churn: Vec<churn::Plan>,
    /// Its objects exist already.
    pub(super) script: Option<Script>,
    /// Calls of the subject's API over Deployments, which exist already, and where the calls go.
    pub(super) calls: Option<(calls::Filled, calls::Target)>,
}

/// What generates load.
#[derive(Default)]
pub(super) struct Load {
    admission: Option<Sent>,
    attacks: Option<Attacks>,
    /// Instead of that, load through the API server.
    through: Option<Through>,
    /// The registration of the webhook, to be removed.
    registration: Option<Registration>,
    /// How often each of them was called.
    asked: Vec<WebhookRow>,
    /// What the stopped load still had to say.
    rest: Option<admission::Interval>,
    /// That it was not all.
    gone: Option<Gone>,
    /// One for each section, with whether everything of it is deleted in the end.
    churn: Vec<(Churn, bool)>,
    script: Option<Script>,
    /// Calls of the subject's API over Deployments, and what they still had to say when they stopped.
    calls: Option<calls::Load>,
    /// What of the script was told in rows already.
    script_told: script::Counts,
}

/// Reviews for the webhook itself, and who sends them.
enum Sent {
    /// This process.
    Here(admission::Load),
    /// Workers.
    Beside(Beside),
}

/// Load through the API server, and what that stores.
struct Through {
    load: through::Load,
    stored: through::Stored,
    stopped: bool,
}

/// What load and churn did since the last reading.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) admission: Option<AdmissionRow>,
    pub(super) churn: Option<ChurnRow>,
    pub(super) calls: Option<CallsRow>,
}

impl Load {
    /// Fills the population, then starts churn and admission load. Returns when that began.
    pub(super) async fn start(plan: LoadPlan, api: Api) -> Result<(Self, Instant)> {
        // Whatever is written is shown to webhooks of one's own; ours for images are told by a label whom they see.
        let (own, usual) = match plan.registration.as_ref() {
            Some(registration) if registration.is_own() => (Some(registration), None),
            registration => (None, registration),
        };
        let mut load = Self::default();
        let assigned = match (plan.crew, &plan.admission) {
            (Some(crew), Some((Planned::Direct(plan), target))) => Some(crew.assign(plan, target).await?),
            _ => None,
        };
        let (before, _) = load.register(own, plan.admission.as_ref(), &api).await?;
        load.churn = churn(plan.churn, &api).await?;
        let (after, mut begin) = load.register(usual, plan.admission.as_ref(), &api).await?;
        let stored = before.or(after);
        let failed = "failed to start the admission load";
        match (plan.admission, stored) {
            (Some((Planned::Direct(plan), target)), _) => {
                let plan = plan.settled(&target).await.context(failed)?;
                load.admission = Some(match assigned {
                    None => Sent::Here(admission::Load::start(plan, &target, begin).context(failed)?),
                    Some(assigned) => {
                        let (beside, begins) = assigned.begin().await.context(failed)?;
                        begin = begins;
                        Sent::Beside(beside)
                    }
                });
            }
            (Some((Planned::Through(plan), _)), Some(stored)) => {
                let through = through::Load::begin(&plan, &api, begin).context(failed)?;
                load.through = Some(Through { load: through, stored, stopped: false });
            }
            _ => {}
        }
        load.attacks = plan.attacks.map(|attacks| attacks.begin(begin)).transpose()?;
        if let Some((filled, target)) = plan.calls {
            load.calls = Some(calls::Load::begin(filled, &target, begin).context("failed to start the calls")?);
        }
        Ok((load, begin))
    }

    /// Registers the webhook, and begins to watch what the load will store. Returns when load begins.
    async fn register(
        &self,
        registration: Option<&Registration>,
        admission: Option<&(Planned, admission::Target)>,
        api: &Api,
    ) -> Result<(Option<through::Stored>, Instant)> {
        let begin = |load: &Self| load.churn.iter().map(|(churn, _)| churn.begin()).max().unwrap_or_else(Instant::now);
        let Some(registration) = registration else { return Ok((None, begin(self))) };
        let through = admission.and_then(|(plan, _)| plan.through());
        let mut stored = None;
        if let Some(plan) = through {
            through::Load::prepare(plan, api, kind::manifests::OPT_IN_LABEL).await?;
            registration.await_accounts(api, plan).await?;
            let covers = |group: &str, plural: &str| registration.covers(group, plural);
            stored = Some(through::Stored::watch(plan, api, &covers).await?);
        }
        let asked = install::Api::from(api);
        registration.install(&asked, through.and_then(through::Plan::probe)).await?;
        Ok((stored, begin(self).max(Instant::now())))
    }

    /// The registration that is about to be made.
    pub(super) fn will_unregister(&mut self, registration: Option<Registration>) {
        self.registration = registration;
    }

    /// Removes the registration of the webhooks, if there is one, after the API server was asked how often it called them.
    pub(super) async fn unregister(&mut self, api: &Api) -> Result<()> {
        let Some(registration) = self.registration.take() else { return Ok(()) };
        let api = install::Api::from(api);
        let asked = registration.asked(&api).await;
        registration.remove(&api).await?;
        self.asked = asked.context("failed to ask how often the webhooks were called")?;
        Ok(())
    }

    /// How often each webhook was called, where that is known: once, when it has ended.
    pub(super) fn take_asked(&mut self) -> Vec<WebhookRow> {
        std::mem::take(&mut self.asked)
    }

    /// The last word about what was stored. An error means that the harness has a gap.
    pub(super) async fn confirm(&mut self) -> Result<()> {
        if let Some(calls) = &self.calls {
            calls.settle().await;
        }
        let Some(through) = &mut self.through else { return Ok(()) };
        through.stored.wrote(through.load.take_writes());
        Ok(through.stored.finish().await?)
    }

    /// Whether every write that was answered was also watched. Ask when everything was read.
    pub(super) fn agreed(&mut self) -> Result<()> {
        let Some(through) = self.through.take() else { return Ok(()) };
        Ok(through.stored.agrees()?)
    }

    /// Load that is a script alone, whose objects exist already.
    pub(super) fn scripted(script: Option<Script>) -> Self {
        Self { script, ..Self::default() }
    }

    /// Goes on with the script that was there before load began, whose times count from `begin`.
    pub(super) fn go_on(&mut self, before: Self, begin: Instant) {
        self.script = before.script;
        self.script_told = before.script_told;
        self.registration = before.registration;
        if let Some(script) = &mut self.script {
            script.begin(begin);
        }
    }

    /// The attacks under way.
    pub(super) fn attacks(&mut self) -> Option<&mut Attacks> {
        self.attacks.as_mut()
    }

    /// A fault was hit: the script may wait for it.
    pub(super) fn hit(&mut self, id: &str, at: Instant) {
        if let Some(script) = &mut self.script {
            script.hit(id, at);
        }
    }

    /// Why the script could not go on, if it could not.
    pub(super) fn refused(&self) -> Option<script::Error> {
        self.script.as_ref().and_then(Script::refused)
    }

    /// Why what is sent is not what was planned any more, if it is not.
    pub(super) fn gone(&mut self) -> Option<Gone> {
        match &self.admission {
            Some(Sent::Beside(load)) => load.take_gone(),
            Some(Sent::Here(_)) | None => self.gone.take(),
        }
    }

    /// What writes canaries, if there is churn: of the resource that a fault is about, where that is churned.
    pub(super) fn canaries(&self, resource: Option<&str>) -> Option<Canaries> {
        let of = |name: &str| resource.is_some_and(|wanted| name == wanted || name.split('.').next() == Some(wanted));
        let its = self.churn.iter().find(|(churn, _)| of(churn.resource()));
        its.or(self.churn.first()).map(|(churn, _)| churn.canaries())
    }

    /// The successful writes of the churn since the last call, where a real control plane needs a second account of them.
    pub(super) fn writes(&self) -> Option<Writes> {
        let churn = self.churn.iter().filter_map(|(churn, _)| churn.take_writes());
        let script = self.script.as_ref().and_then(Script::take_writes);
        churn.chain(script).reduce(|mut all, more| {
            all.writes.extend(more.writes);
            all.lost += more.lost;
            all
        })
    }

    /// Stops sending and waits for what is under way.
    pub(super) async fn stop(&mut self) {
        match self.admission.take() {
            Some(Sent::Here(load)) => self.rest = Some(load.stop(IN_FLIGHT_DRAIN).await),
            Some(Sent::Beside(load)) => {
                let (rest, gone) = load.stop().await;
                (self.rest, self.gone) = (Some(rest), gone);
            }
            None => {}
        }
        if let Some(calls) = &mut self.calls {
            calls.stop(IN_FLIGHT_DRAIN).await;
        }
        if let Some(through) = self.through.as_mut().filter(|through| !through.stopped) {
            through.stopped = true;
            through.load.stop(IN_FLIGHT_DRAIN).await;
        }
        for (churn, _) in &mut self.churn {
            // A worker that is gone has stopped too; what it could not do is counted as failed.
            let _ = churn.stop(IN_FLIGHT_DRAIN).await;
        }
        if let Some(script) = &mut self.script {
            script.stop(IN_FLIGHT_DRAIN).await;
        }
    }

    /// Deletes everything that the churn made, where the scenario says so. Ask when everything has stopped. What cannot be
    /// deleted, because a finalizer holds it, is seen in the end state.
    pub(super) async fn end(&mut self) -> Result<()> {
        for (churn, _) in self.churn.iter_mut().filter(|(_, ends_empty)| *ends_empty) {
            match churn.empty().await {
                Ok(_) | Err(churn::Error::Left { .. }) => {}
                Err(error) => return Err(error).context("failed to delete what the churn made"),
            }
        }
        Ok(())
    }

    /// Takes what was measured since the last time, writes its histograms and returns its rows.
    pub(super) fn read(&mut self, writer: &mut Writer, start_ms: u64, end_ms: u64) -> Result<Reading> {
        let interval = match (&mut self.admission, self.rest.take()) {
            (_, Some(rest)) => Some(rest),
            (Some(Sent::Here(load)), None) => Some(load.take()),
            (Some(Sent::Beside(load)), None) => Some(load.take()),
            (None, None) => self.through.as_ref().map(|through| through.load.take()),
        };
        let churned = self.churn.iter().map(|(churn, _)| churn.take()).collect::<Vec<_>>();
        let churned = churn::Interval::of_all(&churned);
        let interval = with_answers(interval, churned.as_ref());
        let mut reading = Reading::default();
        if let Some(interval) = interval {
            for (tag, histogram) in hlog::tagged(&interval) {
                writer.latency(tag, start_ms, end_ms, histogram)?;
            }
            reading.admission = Some(admission_row(interval));
        }
        if let Some(row) = &mut reading.admission
            && let Some(through) = &mut self.through
        {
            through.stored.wrote(through.load.take_writes());
            let through::Found { stored, unpinned, examples } = through.stored.take()?;
            row.stored = Some(StoredRow { versions: stored, unpinned, examples });
        }
        if let Some(interval) = churned {
            writer.latency("churn.lateness", start_ms, end_ms, &interval.lateness)?;
            reading.churn = Some(ChurnRow {
                planned: interval.planned,
                created: interval.created,
                updated: interval.updated,
                deleted: interval.deleted,
                refused: interval.refused,
                failed: interval.failed,
                lateness: Quantiles::of_any(&interval.lateness),
                objects_total: interval.objects_total,
            });
        }
        if let Some(interval) = self.calls.as_ref().map(calls::Load::take) {
            let histograms = [
                (tag::CALLS_READ, &interval.read),
                (tag::CALLS_SET, &interval.set),
                (tag::CALLS_LATENESS, &interval.lateness),
                (tag::CALLS_STALENESS, &interval.staleness),
            ];
            for (tag, histogram) in histograms {
                writer.latency(tag, start_ms, end_ms, histogram)?;
            }
            reading.calls = Some(super::calls::row(interval));
        }
        self.read_script(&mut reading);
        Ok(reading)
    }

    /// Scripted writes are told with those of the churn: both are changes of objects that were asked for.
    fn read_script(&mut self, reading: &mut Reading) {
        let Some(script) = &self.script else { return };
        let now = script.counts();
        let before = std::mem::replace(&mut self.script_told, now);
        let row = reading.churn.get_or_insert_default();
        row.planned += now.planned - before.planned;
        row.created += now.created - before.created;
        row.updated += now.updated - before.updated;
        row.deleted += now.deleted - before.deleted;
        row.failed += now.failed - before.failed;
        row.objects_total += now.objects_total;
    }
}

/// Fills the population of each section, and lets all of them begin together.
async fn churn(plans: Vec<churn::Plan>, api: &Api) -> Result<Vec<(Churn, bool)>> {
    let mut all = Vec::with_capacity(plans.len());
    for plan in plans {
        let ends_empty = plan.config().end == churn::End::Empty;
        let churn = Churn::fill(plan, api).await.context("failed to start the churn")?;
        all.push((churn, ends_empty));
    }
    let begin = Instant::now();
    for (churn, _) in &mut all {
        churn.go(begin).context("failed to start the churn")?;
    }
    Ok(all)
}

/// Admission load with what webhooks answered to churn. Those times are of whole writes, as whoever writes sees them.
fn with_answers(load: Option<admission::Interval>, churn: Option<&churn::Interval>) -> Option<admission::Interval> {
    let Some(answers) = churn.map(|churn| &churn.answers).filter(|answers| !answers.is_empty()) else { return load };
    let asked = answers.allowed + answers.denied + answers.failed;
    let mut service = answers.response_allowed.clone();
    for more in [&answers.response_denied, &answers.response_error] {
        // Histograms of the same bounds always add up.
        let _ = service.add(more);
    }
    let counts = admission::Counts {
        planned: asked,
        sent: asked,
        allowed: answers.allowed,
        denied: answers.denied,
        http_error: answers.failed,
        wrong_verdicts: answers.wrong_verdicts,
        wrong_allows: answers.wrong_allows,
        ..admission::Counts::default()
    };
    let mut all = admission::Interval {
        counts,
        response_allowed: answers.response_allowed.clone(),
        response_denied: answers.response_denied.clone(),
        response_error: answers.response_error.clone(),
        service,
        examples: answers.examples.clone(),
        ..admission::Interval::default()
    };
    if let Some(load) = load {
        all.add(&load);
    }
    Some(all)
}

fn admission_row(interval: admission::Interval) -> AdmissionRow {
    let (response, counts) = (interval.response(), interval.counts);
    let mut examples = interval.examples;
    examples.truncate(EXAMPLES_MAX);
    AdmissionRow {
        planned: counts.planned,
        sent: counts.sent,
        overflow: counts.overflow,
        allowed: counts.allowed,
        denied: counts.denied,
        http_error: counts.http_error,
        timeout: counts.timeout,
        connect: counts.connect,
        tls: counts.tls,
        invalid_response: counts.invalid_response,
        sent_again: counts.sent_again,
        unavailable: counts.unavailable,
        moved: counts.moved,
        unlocked: counts.unlocked,
        wrong_verdicts: counts.wrong_verdicts,
        wrong_allows: counts.wrong_allows,
        response: Quantiles::of_any(&response),
        service: Quantiles::of_any(&interval.service),
        lateness: Quantiles::of_any(&interval.lateness),
        examples,
        stored: None,
    }
}
