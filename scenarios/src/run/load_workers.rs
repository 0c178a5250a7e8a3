//! Workers that send the admission load of a run: Pods of one Job if the control plane has nodes, otherwise processes
//! on this machine.
//!
//! Starts the workers and gives them their shares of the load. Workers start before the subject, so that a missing
//! requirement of workers is reported first.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kind::provider::Nodes;
use loadgen::admission::{self, Image, Plan, Target};

use super::plane::HARNESS;
use super::world::World;
use crate::load::workers::job::{self, Job, JobSettings};
use crate::load::workers::{Assigned, Workers};
use crate::load::{self, Webhook};
use crate::scenario::{ControlPlaneKind, Scenario};

/// Time of a run without its load: start of the subject, drain, and the end of all processes.
const BESIDES: Duration = Duration::from_mins(20);

/// Started workers that have no share of the plan yet.
pub(super) struct WaitingWorkers {
    workers: Workers,
    seed: u64,
    length: Duration,
    /// Images of the registry, if the right answer for each image is known.
    images: Option<Vec<Image>>,
}

/// Checks the requirements of workers in Pods before a cluster is started for them.
pub(super) fn check(scenario: &Scenario) -> Result<()> {
    let wanted = scenario.admission.as_ref().and_then(|config| config.workers.as_ref());
    let kind = scenario.control_plane.kind;
    let Some(wanted) = wanted.filter(|_| kind.has_nodes()) else { return Ok(()) };
    kubectl()?;
    anyhow::ensure!(
        wanted.image.is_some() || kind != ControlPlaneKind::Kubeconfig,
        "`workers`: an image can only be loaded into nodes of ours or of kind: name one that the cluster can pull, `workers: {{count: {}, \
         image: …}}`",
        wanted.count
    );
    Ok(())
}

fn kubectl() -> Result<PathBuf> {
    crate::init::kubectl().ok_or_else(kind::guest::no_kubectl).context("`workers` in Pods are started by kubectl")
}

/// The text about workers in the printed plan; `None` without workers.
pub(super) fn plan_text(scenario: &Scenario) -> Option<String> {
    let wanted = scenario.admission.as_ref()?.workers.as_ref()?;
    let place = if scenario.control_plane.kind.has_nodes() { "Pods of one Job" } else { "processes of this machine" };
    Some(format!("{} workers send it: {place}", wanted.count))
}

impl WaitingWorkers {
    /// Starts the workers, if the scenario has any.
    pub(super) async fn open(scenario: &Scenario, world: &World) -> Result<Option<Self>> {
        let Some(wanted) = scenario.admission.as_ref().and_then(|config| config.workers.as_ref()) else {
            return Ok(None);
        };
        let workers = match world.plane.nodes() {
            None => Workers::open(wanted.count, &[]).await,
            Some(nodes) => pods(scenario, world, nodes, wanted).await,
        };
        let workers = workers.context("failed to start the workers of `admission`")?;
        let images = || world.images.iter().map(super::keys::image).collect();
        let images = (!scenario.subject.has_own_policy()).then(images);
        Ok(Some(Self { workers, seed: scenario.seed, length: scenario.phases.loaded(), images }))
    }

    /// Gives the workers their shares of the plan.
    pub(super) async fn assign(self, plan: &Plan, target: &Target) -> Result<Assigned> {
        let Self { workers, seed, length, images } = self;
        let Target { url, server_name, ca_pem, .. } = target.clone();
        let to = Webhook { url, server_name, ca_pem, client_certificate: None };
        let length_ns = u64::try_from(length.as_nanos()).context("the load is too long")?;
        let job = load::Job { config: plan.config().clone(), seed, length_ns, to, images };
        Assigned::new(&job, plan, workers).await.context("failed to give the workers their shares")
    }
}

/// Starts the workers as Pods in the subject's cluster.
async fn pods(scenario: &Scenario, world: &World, nodes: Nodes<'_>, wanted: &admission::Workers) -> Result<Workers> {
    let kubectl = kubectl()?;
    let kubeconfig = world.plane.kubeconfig_of(HARNESS).context("the control plane does not know the harness")?;
    let image = if let Some(image) = &wanted.image {
        image.clone()
    } else {
        nodes.load(job::own_image().await?).await.context("failed to load the image of the workers")?;
        job::OWN_IMAGE.to_owned()
    };
    let place = JobSettings {
        kubectl,
        kubeconfig: world.write("workers.kubeconfig", &kubeconfig)?,
        namespace: None,
        image,
        workers: wanted.count,
        deadline: scenario.phases.total() + BESIDES,
        mark: world.plane.mark().map(|(key, value)| (key.to_owned(), value.to_owned())),
    };
    let (job, commands) = Job::start(place).await?;
    Workers::in_cluster(job, commands).await
}
