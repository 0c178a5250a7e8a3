//! `--on kubernetes`: the workers of a measurement as a Job in a cluster.
//!
//! Owns the flags and the defaults for cluster and image.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kind::cluster::{Health, NODE_NAME};

use crate::load::workers::job::{self, Job, Place};
use tokio::process::Command;

/// Time of a measurement beside its own length, start and drain included.
const BESIDES: Duration = Duration::from_mins(10);

/// Another place for workers.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum On {
    /// One indexed Job, with a Pod for each worker.
    Kubernetes,
}

/// The flags.
#[derive(clap::Args)]
pub(super) struct Flags {
    /// Run the `--workers` as Pods in a cluster instead of processes on this machine: one indexed Job, in its own namespace, which is
    /// removed afterwards. Needs kubectl. Pods must be able to reach the URL.
    #[arg(long, value_enum, value_name = "WHERE", requires = "workers", conflicts_with = "worker")]
    on: Option<On>,
    /// With --on: the kubeconfig of the cluster. Default: that of the node that `longhaul cluster up --kind node` started.
    #[arg(long, value_name = "FILE", requires = "on")]
    kubeconfig: Option<PathBuf>,
    /// With --on: an image that the cluster can pull and whose entry point is the same build of `longhaul`. Default: an image made from
    /// this program and loaded into the node; this works only with a node that Longhaul started.
    #[arg(long, value_name = "IMAGE", requires = "on")]
    image: Option<String>,
    /// With --on: an existing namespace. You then need no rights outside it.
    #[arg(long, value_name = "NAMESPACE", requires = "on")]
    namespace: Option<String>,
}

impl Flags {
    /// Whether the workers are Pods.
    pub(super) fn is_some(&self) -> bool {
        self.on.is_some()
    }

    /// Starts the Job. Returns the commands that connect to its workers as well.
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
        Job::start(Place { kubectl, kubeconfig, namespace, image, workers, deadline, mark: None }).await
    }
}
