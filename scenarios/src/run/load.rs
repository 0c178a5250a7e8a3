//! Admission load, churn and script of one run: started, read and stopped together.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use loadgen::admission::{self, through};
use loadgen::calls;
use loadgen::churn::{self, Api, Canaries, Churn, Writes};
use loadgen::script::{self, Script};
use reports::record::{AdmissionRow, CallsRow, ChurnRow, Quantiles, StoredRow, WebhookRow, Writer, tag};

use super::attacks::{AttackPlan, Attacks};
use super::install;
use super::load_workers::WaitingWorkers;
use super::payloads::Planned;
use super::registration::Registration;
use crate::load::hlog;
use crate::load::workers::{Beside, Gone};

/// Longest wait for open requests when load stops: the longest webhook timeout of kube-apiserver.
const IN_FLIGHT_DRAIN: Duration = Duration::from_secs(30);
/// Maximum number of error texts in a progress line or a report.
const EXAMPLES_MAX: usize = 5;

pub(super) struct LoadPlan {
    pub(super) admission: Option<(Planned, admission::Target)>,
    /// The workers that send the load; `None` if this process sends the load.
    pub(super) workers: Option<WaitingWorkers>,
    pub(super) attacks: Option<AttackPlan>,
    /// The registration of webhooks, made when the subject is ready and before any load.
    pub(super) registration: Option<Registration>,
    pub(super) churn: Vec<churn::Plan>,
    /// A script whose objects already exist.
    pub(super) script: Option<Script>,
    /// Calls of the subject's API for existing Deployments, and the address of this API.
    pub(super) calls: Option<(calls::Filled, calls::Target)>,
}

#[derive(Default)]
pub(super) struct Load {
    admission: Option<Sent>,
    attacks: Option<Attacks>,
    /// Load through the API server, instead of load sent directly to the webhook.
    through: Option<Through>,
    /// The registration of webhooks, which must be removed at the end.
    registration: Option<Registration>,
    /// Number of the API server's calls to each webhook.
    asked: Vec<WebhookRow>,
    /// The counts of the stopped load since counts were last read.
    rest: Option<admission::Interval>,
    /// The reason why less than the planned load is sent, if the load is incomplete.
    gone: Option<Gone>,
    /// One churn for each section, and whether all its objects are deleted at the end.
    churn: Vec<(Churn, bool)>,
    script: Option<Script>,
    /// Calls of the subject's API for Deployments, and their last counts after the stop.
    calls: Option<calls::Load>,
    /// Counts of the script that earlier record rows contain.
    script_told: script::Counts,
}

/// The generator that sends reviews directly to the webhook.
enum Sent {
    Here(admission::Load),
    Beside(Beside),
}

/// Load through the API server, and the watch of the objects that it stores.
struct Through {
    load: through::Load,
    stored: through::Stored,
    stopped: bool,
}

/// Counts of load and churn since they were last read.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) admission: Option<AdmissionRow>,
    pub(super) churn: Option<ChurnRow>,
    pub(super) calls: Option<CallsRow>,
}

impl Load {
    /// Creates the objects of the population, then starts churn and admission load. Returns the time at which the load
    /// started.
    pub(super) async fn start(plan: LoadPlan, api: Api) -> Result<(Self, Instant)> {
        // The subject's own webhooks see every write; webhooks for images only see objects with a label.
        let (own, usual) = match plan.registration.as_ref() {
            Some(registration) if registration.is_own() => (Some(registration), None),
            registration => (None, registration),
        };
        let mut load = Self::default();
        let assigned = match (plan.workers, &plan.admission) {
            (Some(workers), Some((Planned::Direct(plan), target))) => Some(workers.assign(plan, target).await?),
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

    /// Registers the webhooks, and begins to watch the objects that the load will store. Returns the start of the load.
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

    /// Stores a registration before the registration is made, so that the end of the run removes it.
    pub(super) fn will_unregister(&mut self, registration: Option<Registration>) {
        self.registration = registration;
    }

    /// Reads the API server's number of calls to each webhook, and removes their registration, if there is one.
    pub(super) async fn unregister(&mut self, api: &Api) -> Result<()> {
        let Some(registration) = self.registration.take() else { return Ok(()) };
        let api = install::Api::from(api);
        let asked = registration.webhook_calls(&api).await;
        registration.remove(&api).await?;
        self.asked = asked.context("failed to ask how often the webhooks were called")?;
        Ok(())
    }

    /// Takes the API server's number of calls to each webhook, if known. Called once, after the end of the load.
    pub(super) fn take_asked(&mut self) -> Vec<WebhookRow> {
        std::mem::take(&mut self.asked)
    }

    /// Reads all remaining changes from the watch of the load's objects. An error means that the watch missed changes.
    pub(super) async fn confirm(&mut self) -> Result<()> {
        if let Some(calls) = &self.calls {
            calls.settle().await;
        }
        let Some(through) = &mut self.through else { return Ok(()) };
        through.stored.wrote(through.load.take_writes());
        Ok(through.stored.finish().await?)
    }

    /// Fails if the watch did not show every answered write of the load. To be called when all changes were read.
    pub(super) fn agreed(&mut self) -> Result<()> {
        let Some(through) = self.through.take() else { return Ok(()) };
        Ok(through.stored.agrees()?)
    }

    /// Load that consists of a script alone, whose objects already exist.
    pub(super) fn scripted(script: Option<Script>) -> Self {
        Self { script, ..Self::default() }
    }

    /// Continues the script that ran before the load. From now on, the times of the script count from `begin`.
    pub(super) fn go_on(&mut self, before: Self, begin: Instant) {
        self.script = before.script;
        self.script_told = before.script_told;
        self.registration = before.registration;
        if let Some(script) = &mut self.script {
            script.begin(begin);
        }
    }

    /// The running attacks; `None` without attacks.
    pub(super) fn attacks(&mut self) -> Option<&mut Attacks> {
        self.attacks.as_mut()
    }

    /// Reports the hit of a fault, for which the script may wait.
    pub(super) fn hit(&mut self, id: &str, at: Instant) {
        if let Some(script) = &mut self.script {
            script.hit(id, at);
        }
    }

    /// The reason why the script stopped early, if it did.
    pub(super) fn refused(&self) -> Option<script::Error> {
        self.script.as_ref().and_then(Script::refused)
    }

    /// The reason why less than the planned load is sent; `None` if the whole load is sent.
    pub(super) fn gone(&mut self) -> Option<Gone> {
        match &self.admission {
            Some(Sent::Beside(load)) => load.take_gone(),
            Some(Sent::Here(_)) | None => self.gone.take(),
        }
    }

    /// The writer of canaries: for the resource of a fault if this resource is churned, otherwise for another churned
    /// resource; `None` without churn.
    pub(super) fn canaries(&self, resource: Option<&str>) -> Option<Canaries> {
        let of = |name: &str| resource.is_some_and(|wanted| name == wanted || name.split('.').next() == Some(wanted));
        let its = self.churn.iter().find(|(churn, _)| of(churn.resource()));
        its.or(self.churn.first()).map(|(churn, _)| churn.canaries())
    }

    /// Successful writes of the churn since the last call. On a real control plane, the writes of the churn are
    /// compared with the watched commits.
    pub(super) fn writes(&self) -> Option<Writes> {
        let churn = self.churn.iter().filter_map(|(churn, _)| churn.take_writes());
        let script = self.script.as_ref().and_then(Script::take_writes);
        churn.chain(script).reduce(|mut all, more| {
            all.writes.extend(more.writes);
            all.lost += more.lost;
            all
        })
    }

    /// Stops sending and waits for open calls.
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
            // A lost worker has stopped too; its missing calls count as failed.
            let _ = churn.stop(IN_FLIGHT_DRAIN).await;
        }
        if let Some(script) = &mut self.script {
            script.stop(IN_FLIGHT_DRAIN).await;
        }
    }

    /// Deletes all objects of the churn, if the scenario asks for their deletion. To be called when all load has
    /// stopped. The end state reports objects that a finalizer holds.
    pub(super) async fn end(&mut self) -> Result<()> {
        for (churn, _) in self.churn.iter_mut().filter(|(_, ends_empty)| *ends_empty) {
            match churn.empty().await {
                Ok(_) | Err(churn::Error::Left { .. }) => {}
                Err(error) => return Err(error).context("failed to delete what the churn made"),
            }
        }
        Ok(())
    }

    /// Takes the counts since the last call, writes their histograms and returns their rows.
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

    /// Adds the writes of the script to those of the churn, because both are planned changes of objects.
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

/// Creates the population of each churn section, then starts all sections together.
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

/// Adds the answers that webhooks gave to writes of the churn. The time of a webhook's answer to a write is the time of
/// the whole write, as the client sees it.
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
