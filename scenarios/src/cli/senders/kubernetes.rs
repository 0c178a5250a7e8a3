//! `--on kubernetes`: runs the workers of a measurement as a Job in a cluster.
//!
//! Owns the flags of workers in Pods, and the default cluster and image of such workers.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kind::cluster::{Health, NODE_NAME};

use crate::load::workers::job::{self, Job, JobSettings};
use tokio::process::Command;

/// Time that a Job needs in addition to the length of the load, for start and drain.
const BESIDES: Duration = Duration::from_mins(10);

/// Where the workers run, if not on this machine.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum On {
    /// One indexed Job, with a Pod for each worker.
    Kubernetes,
}

/// Flags of workers in a cluster.
#[derive(clap::Args)]
pub(super) struct Flags {
    /// Run the `--workers` as Pods in a cluster instead of processes on this machine. Longhaul creates one indexed Job in its own
    /// namespace, and removes the namespace afterwards. Needs kubectl. Pods must be able to reach the URL.
    #[arg(long, value_enum, value_name = "WHERE", requires = "workers", conflicts_with = "worker")]
    on: Option<On>,
    /// With --on: the kubeconfig of the cluster. Default: the kubeconfig of the node that `longhaul cluster up --kind node` started.
    #[arg(long, value_name = "FILE", requires = "on")]
    kubeconfig: Option<PathBuf>,
    /// With --on: an image that the cluster can pull and whose entry point is the same build of `longhaul`. Default: an image of this
    /// program, which Longhaul loads into the node; possible only with a node that Longhaul started.
    #[arg(long, value_name = "IMAGE", requires = "on")]
    image: Option<String>,
    /// With --on: an existing namespace for the Job. In an existing namespace, Longhaul needs no rights outside this
    /// namespace.
    #[arg(long, value_name = "NAMESPACE", requires = "on")]
    namespace: Option<String>,
}

impl Flags {
    /// Whether the workers are Pods.
    pub(super) fn is_some(&self) -> bool {
        self.on.is_some()
    }

    /// Starts the Job with the workers. Returns the Job and the commands that connect to its workers.
    pub(super) async fn start(&self, workers: u32, length: Duration) -> Result<(Job, Vec<(Command, String)>)> {
        let kubectl = crate::init::kubectl().context("needs kubectl: none is on the PATH nor in KUBEBUILDER_ASSETS")?;
        let state = kind::state::default_directory()?;
        let ours = || -> Result<Option<PathBuf>> {
            let clusters = kind::cluster::status(&state)?.clusters;
            let node = clusters.into_iter().find(|one| one.name == NODE_NAME && one.health == Health::Running);
            Ok(node.and_then(|node| node.kubeconfig))
        };
        let kubeconfig = match &self.kubeconfig {
            Some(file) => std::path::absolute(file).with_context(|| format!("--kubeconfig {}", file.display()))?,
            None => ours()?.context(
                "there is no cluster: name its kubeconfig with --kubeconfig, or start one with `longhaul cluster up --kind node`",
            )?,
        };
        ensure!(kubeconfig.is_file(), "--kubeconfig {}: no such file", kubeconfig.display());
        let image = match &self.image {
            Some(image) => image.clone(),
            None if ours()?.is_some_and(|own| own == kubeconfig) => job::load_own_image(&state, NODE_NAME).await?,
            None => bail!(
                "--image is missing: Longhaul can load an image only into a node that it started; other nodes pull it"
            ),
        };
        let deadline = length + BESIDES;
        let namespace = self.namespace.clone();
        Job::start(JobSettings { kubectl, kubeconfig, namespace, image, workers, deadline, mark: None }).await
    }
}
