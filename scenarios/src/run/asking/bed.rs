//! The subject and the API server of a play.
//!
//! Owns their start and end, restarts, faults, and the subject's writes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use loadgen::admission::{Asking, Target};
use mock_faults::{Fault, FaultId};

use crate::hunt::audit::is_ignored;
use crate::hunt::webhook::answer::shortened;
use crate::run::attach::Who;
use crate::run::audited::AuditedRequests;
use crate::run::ready::wait_until_ready;
use crate::run::registration::Registration;
use crate::run::start::{self, Prepared, SubjectPlan};
use crate::run::world::World;
use crate::run::{Options, install};
use crate::scenario::Scenario;
use crate::subject::{Exit, Launch, Log, Processes};

/// The subject counts as settled if it has not written for this time.
const SILENCE: Duration = Duration::from_secs(1);
/// Longest wait until the subject has settled.
const SETTLE_MAX: Duration = Duration::from_secs(10);
/// How long a write may follow a review.
const SOON: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(50);
/// The number of the fault that is active; there is one at a time.
const FAULT: FaultId = FaultId(1);

pub(super) struct Bed<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) world: World,
    pub(super) target: Target,
    /// The registration that a run would make.
    pub(super) registration: Option<Registration>,
    launches: Vec<Launch>,
    processes: tokio::sync::Mutex<Processes>,
    log: Log,
    /// Keeps everything that the subject calls running.
    plan: SubjectPlan<'a>,
}

impl<'a> Bed<'a> {
    /// Starts API server and subject, and waits until the subject is ready.
    pub(super) async fn up(options: &'a Options) -> Result<Self> {
        let scenario = &options.source.scenario;
        let Prepared { directory, world, subject: mut plan, load, .. } = start::prepare(options).await?;
        let Some((_, target)) = load.admission else { bail!("the subject has no address for reviews") };
        let Who::Started(launches) = std::mem::replace(&mut plan.who, Who::Started(Vec::new())) else {
            bail!("the subject runs already, and a play must start it");
        };
        let server = &world.plane.mock().context("a play needs the mock control plane")?.server;
        server.note_writes();
        plan.clock.start(Instant::now());
        let lines = plan.witness.lines.take().map(|lines| (lines, plan.reporter.clone()));
        let log = Log::create(&directory, lines)?;
        let processes = tokio::sync::Mutex::new(Processes::start(&launches, &log)?);
        let registration = load.registration;
        let bed = Self { scenario, world, target, registration, launches, processes, log, plan };
        if let Err(error) = bed.ready().await {
            return Err(bed.with_words(&error).await);
        }
        Ok(bed)
    }

    async fn ready(&self) -> Result<()> {
        let deadline = Instant::now() + self.scenario.subject.start_timeout.0;
        let (plane, mut asked) = (&self.world.plane, AuditedRequests::new(self.scenario));
        let exits = async {
            loop {
                if let Some(exit) = self.processes.lock().await.exited() {
                    return exit;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::select! {
            waited = wait_until_ready(self.plan.ready.clone(), deadline, || asked.requests_so_far(plane)) => waited,
            exit = exits => bail!("it exited before it was ready ({exit})"),
        }
    }

    /// A client with new connections.
    pub(super) fn asking(&self, connections: usize) -> Result<Asking> {
        Ok(Asking::new(&self.target, connections)?)
    }

    /// The API server's opinion of an object that is created, without storing it: the object as it would be stored, or
    /// the reason why it is refused.
    pub(super) async fn dry(
        &self,
        collection: &str,
        object: &serde_json::Value,
    ) -> Result<Result<serde_json::Value, String>> {
        let api = self.world.api();
        let api = install::Api::from(&api);
        let path = format!("{collection}?dryRun=All");
        let (status, answer) = api.ask(hyper::Method::POST, &path, object.to_string()).await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
        if status.is_success() {
            return Ok(Ok(answer));
        }
        let message = answer["message"].as_str().unwrap_or("no reason was given");
        Ok(Err(format!("{}: {message}", status.as_u16())))
    }

    /// The kinds of writes until the subject has settled; `None` if it does not.
    pub(super) async fn settled_writes(&self) -> Option<BTreeSet<String>> {
        let mut known = BTreeSet::new();
        let (ends, mut last) = (Instant::now() + SETTLE_MAX, Instant::now());
        while last.elapsed() < SILENCE {
            if Instant::now() >= ends {
                return None;
            }
            let writes = self.writes();
            if !writes.is_empty() {
                last = Instant::now();
            }
            known.extend(writes);
            tokio::time::sleep(POLL).await;
        }
        Some(known)
    }

    /// The kinds of writes since the last call, and in the next moment.
    pub(super) async fn writes_soon(&self) -> Vec<String> {
        tokio::time::sleep(SOON).await;
        self.writes()
    }

    /// The kinds of the subject's writes since the last call. Leases and events are left out.
    fn writes(&self) -> Vec<String> {
        let Some(mock) = self.world.plane.mock() else { return Vec::new() };
        let user = self.world.plane.subject();
        let (written, _) = mock.server.take_writes();
        let own = written.into_iter().filter(|write| &*write.user == user);
        let own = own.filter(|write| !is_ignored(&write.resource));
        own.map(|write| {
            let sub = if write.subresource.is_empty() { String::new() } else { format!("/{}", write.subresource) };
            format!("{} of {}{sub}", write.verb.text(), write.resource)
        })
        .collect()
    }

    pub(super) fn begin(&self, fault: &Fault) -> Result<()> {
        let faults = self.world.plane.faults().context("only the mock can have faults")?;
        faults.begin(FAULT, fault).context("failed to begin a fault")
    }

    pub(super) fn end(&self) {
        if let Some(faults) = self.world.plane.faults() {
            faults.end(FAULT);
        }
    }

    /// Replaces the serving certificate, as a kubelet does.
    pub(super) fn reload(&self) -> Result<()> {
        self.world.rotate_certificate(None).context("failed to replace the certificate")
    }

    /// Stops the subject and starts it again at the same addresses.
    pub(super) async fn restart(&mut self) -> Result<()> {
        let timeout = self.scenario.subject.upkeep().stop_timeout();
        let processes = self.processes.get_mut();
        processes.stop(timeout).await;
        *processes = Processes::start(&self.launches, &self.log)?;
        self.ready().await
    }

    /// The end of a process of the subject, if one has ended.
    pub(super) fn exited(&mut self) -> Option<Exit> {
        self.processes.get_mut().exited()
    }

    /// The error with the last output of the subject, on one line.
    pub(super) async fn with_words(&self, error: &anyhow::Error) -> anyhow::Error {
        let words = self.processes.lock().await.last_words(None).await;
        anyhow::anyhow!("{error:#}. Last output of the subject: {}", shortened(&words))
    }

    /// Stops subject and API server.
    pub(super) async fn down(self) {
        let timeout = self.scenario.subject.upkeep().stop_timeout();
        self.processes.into_inner().stop(timeout).await;
        self.world.stop().await;
    }
}
