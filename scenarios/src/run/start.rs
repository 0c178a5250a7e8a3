//! Prepares a run: control plane and registry, the plans, the subject's settings and the manifest. The subject is not
//! started yet, so each error in this module is an error of the scenario or of the machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use loadgen::script::{self, Script};
use mock_faults::Name;
use reports::record::{Manifest, MetricsPlan};

mod steps;
mod wiring;

use super::alerts::Receiver;
use super::attach::Who;
use super::attacks::AttackPlan;
use super::feed::Feed;
use super::load::LoadPlan;
use super::load_workers;
use super::mounted::Mounted;
use super::ports::free_port;
use super::ready::Ready;
use super::redis::Redis;
use super::registration::Registration;
use super::validators::Validators;
use super::world::World;
use super::{Options, payloads};
use crate::clock::Clock;

use crate::private;
use crate::scenario::{self, METRICS_PORT, Scenario};
use crate::witness::{self, Reported, Reporter};

use steps::Witnessed;
pub(super) use wiring::{Endpoints, Launcher};
use wiring::{Reviews, with_port};

/// Maximum number of runs of one scenario and seed that may start within the same second in one folder.
const SAME_SECOND_MAX: u32 = 100;

/// Everything that must exist before the subject starts.
pub(super) struct Prepared<'a> {
    pub(super) directory: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) world: World,
    pub(super) subject: SubjectPlan<'a>,
    pub(super) load: LoadPlan,
}

/// How the subject starts, becomes ready, and proves its observations.
pub(super) struct SubjectPlan<'a> {
    pub(super) who: Who,
    pub(super) ready: Ready,
    pub(super) reported: Reported,
    pub(super) reporter: Reporter,
    /// Receives the subject's observations.
    pub(super) witness: witness::Open,
    pub(super) clock: Clock,
    pub(super) feed: Feed,
    /// How the subject's processes are started, the first time and again.
    pub(super) launcher: Launcher<'a>,
    pub(super) endpoints: Endpoints,
    /// The subject's own metrics that the run reads.
    pub(super) metrics: Option<MetricsPlan>,
    pub(super) receiver: Option<Arc<Receiver>>,
    /// The shared cache in which the subject keeps verdicts.
    pub(super) redis: Option<Redis>,
    /// The subject's validators (the processes that verify signatures).
    pub(super) validators: Validators,
}

/// Prepares a run in one direction. Each step takes the step before it and owns what it opened.
pub(super) async fn prepare(options: &Options) -> Result<Prepared<'_>> {
    let scenario = &options.source.scenario;
    load_workers::check(scenario)?;
    let world = World::start(scenario, options.counts_bytes).await?;
    let witnessed = Witnessed::open(options, world).await?;
    let placed = Box::pin(witnessed.place()).await?;
    let planned = placed.plan()?;
    Box::pin(planned.record()).await
}

/// The subject's own metrics that the run reads. The service has a metrics page. If restarts replace the subject's
/// process, each process has a different page, and no page is read unless the scenario names a page.
fn metrics(scenario: &Scenario, health: Option<SocketAddr>, port: Option<u16>) -> Option<MetricsPlan> {
    let subject = &scenario.subject;
    let is_replaced = scenario.faults.has(Name::SubjectRestart);
    let own = health.filter(|_| !is_replaced).map(|address| format!("http://{address}/metrics"));
    let told = subject.metrics.as_ref();
    let url = told.and_then(|metrics| metrics.url.as_ref()).map(|url| with_port(url, port)).or(own)?;
    let heap = told.and_then(|metrics| metrics.heap.clone());
    let every_ms = crate::clock::millis(crate::metrics::every(scenario.phases.steady.0));
    Some(MetricsPlan { url, every_ms, heap, series: scenario::series(scenario) })
}

/// Folders that replace a kubelet's mounts, if the scenario asks for any.
async fn mounted(scenario: &Scenario, world: &World) -> Result<Option<Mounted>> {
    let Some(wanted) = scenario.subject.profile().mounts else { return Ok(None) };
    let kubeconfig = std::fs::read_to_string(world.kubeconfig()?).context("the kubeconfig could not be read again")?;
    Mounted::open(wanted, &world.folder("mounts"), world.api(), &kubeconfig).await.map(Some)
}

/// A port for the metrics, if the scenario names a variable instead of an address.
fn metrics_port(scenario: &Scenario) -> Result<Option<u16>> {
    let url = scenario.subject.metrics.as_ref().and_then(|metrics| metrics.url.as_ref());
    url.filter(|url| url.contains(METRICS_PORT)).map(|_| free_port(Ipv4Addr::LOCALHOST)).transpose()
}

/// Creates the run's directory. Two runs of one scenario that start within the same second get different names.
fn directory(runs: &Path, manifest: &mut Manifest) -> Result<PathBuf> {
    std::fs::create_dir_all(runs).with_context(|| format!("failed to make the folder {}", runs.display()))?;
    let id = manifest.run_id.clone();
    for number in 1..=SAME_SECOND_MAX {
        if number > 1 {
            manifest.run_id = format!("{id}-{number}");
        }
        let directory = runs.join(&manifest.run_id);
        match std::fs::DirBuilder::new().mode(private::MODE).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("failed to make the folder {}", directory.display()));
            }
        }
    }
    bail!("there are already {SAME_SECOND_MAX} records named {id} in {}", runs.display())
}

fn load_plan(
    scenario: &Scenario,
    world: &World,
    webhook: Option<Reviews>,
    receiver: Option<&Receiver>,
) -> Result<LoadPlan> {
    let length = scenario.phases.loaded();
    let plan = payloads::plan(scenario, &world.images)?;
    if let Some(truth) = plan.as_ref().and_then(payloads::Planned::truth) {
        if let Some(staleness) = scenario.budgets.registry.as_ref().and_then(|registry| registry.staleness) {
            truth.may_be_stale(staleness.0);
        }
        if scenario.registry.lock.is_some() {
            truth.lock();
        }
        world.tell_moves(truth);
    }
    if let (Some(payloads::Planned::Direct(plan)), Some(receiver)) = (&plan, receiver) {
        plan.tell(receiver.answers());
    }
    let registration = match &webhook {
        Some(Reviews { url, ca_pem, .. }) => Registration::of(scenario, url, ca_pem)?,
        None => None,
    };
    let admission = match (plan, webhook) {
        (Some(plan), Some(Reviews { url, server_name, ca_pem })) => {
            let target =
                loadgen::admission::Target { url, server_name, ca_pem, client_certificate: None, pace: world.pace };
            Some((plan, target))
        }
        _ => None,
    };
    let attacks = match &admission {
        Some((_, target)) => AttackPlan::new(scenario, target, &world.images)?,
        None => None,
    };
    let mut churn =
        loadgen::churn::Plan::all(&scenario.churn, scenario.seed, length).context("failed to plan the churn")?;
    if let Some(registration) = &registration {
        churn = churn.into_iter().map(|plan| with_judged_answers(plan, registration)).collect();
    }
    if world.plane.mock().is_none() {
        // The audit of a real control plane may miss writes, so the churn also reports its writes.
        churn = churn.into_iter().map(loadgen::churn::Plan::recording_writes).collect();
    }
    Ok(LoadPlan { admission, workers: None, attacks, registration, churn, script: None, calls: None })
}

/// Marks a plan of churn so that the answers of the subject's own webhooks are judged. Webhooks for images do not
/// review churn.
fn with_judged_answers(plan: loadgen::churn::Plan, registration: &Registration) -> loadgen::churn::Plan {
    if !registration.is_own() {
        return plan;
    }
    let covers = registration.covered(plan.spelled());
    plan.judging(covers)
}

async fn script(scenario: &Scenario, world: &World) -> Result<Option<Script>> {
    let Some(config) = &scenario.script else { return Ok(None) };
    let mut plan = script::Plan::build(config, scenario.seed).context("failed to plan the script")?;
    if world.plane.mock().is_none() {
        plan = plan.recording_writes();
    }
    Ok(Some(Script::start(plan, &world.api()).await.context("failed to begin the script")?))
}
