//! A real control plane: etcd and kube-apiserver alone, a whole node, a kind cluster, or the user's own cluster.
//!
//! Starts the kind of control plane that the scenario names, and prepares the control plane. The keeper process removes
//! remains of a killed run, and `longhaul cluster status` lists them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kind::guest::{self, Guest};
use kind::local::{self, Local};
use kind::node::{self, Node};
use kind::provider::Provider;

use super::HARNESS;
use crate::keeper::{self, Order};
use crate::run::account::{Account, MASTERS};
use crate::run::install::{self, Api};
use crate::scenario::{ControlPlane, ControlPlaneKind};

/// The environment variable for the folder with etcd and kube-apiserver, by the convention of envtest.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

pub(in crate::run) struct Real(Provider);

impl Real {
    /// Starts the control plane or connects to it, and installs the custom resource `Package`.
    pub(super) async fn start(wanted: &ControlPlane, directory: &Path, account: &Account) -> Result<Self> {
        let directory = directory.join("control-plane");
        let user = |name: &str, groups: Vec<String>| local::User { name: name.to_owned(), groups };
        let users = vec![user(&account.user, account.groups.clone()), user(HARNESS, vec![MASTERS.to_owned()])];
        let state_directory = kind::state::default_directory().ok();
        if let Some(state) = &state_directory {
            let order = Order::ControlPlanes(state.clone(), std::process::id());
            keeper::tell(&order).context("failed to start the process that ends control planes after a kill")?;
        }
        let guest = |cluster| guest::Config {
            cluster,
            users: users.clone(),
            directory: directory.clone(),
            state_directory: state_directory.clone(),
        };
        let provider = match wanted.kind {
            ControlPlaneKind::Node => {
                let mut config = node::Config::new(assets(wanted.kind)?, &directory, keeper::first_process_of_node());
                (config.users, config.state_directory) = (users.clone(), state_directory.clone());
                // Pods of the load are stored and judged but never run; only the subject's own Pods run.
                config.tainted = true;
                Provider::Node(Box::new(Node::start(config).await.context("failed to start the node")?))
            }
            ControlPlaneKind::Kind => {
                let lasting =
                    state_directory.as_ref().and_then(|state| kind::cluster::lasting_kind(state).ok().flatten());
                let cluster = guest::Cluster::Containers(lasting, wanted.named.containers.clone());
                let guest = Guest::start(guest(cluster)).await.context("failed to use a cluster of kind")?;
                Provider::Guest(Box::new(guest))
            }
            ControlPlaneKind::Kubeconfig => {
                let named = wanted.named.cluster.clone().context(
                    "`--control-plane kubeconfig` uses only a cluster that you name: write `--i-know-this-cluster NAME`, the name of the \
                     cluster or context in the kubeconfig",
                )?;
                let cluster = guest::Cluster::Kubeconfig(wanted.named.kubeconfig.clone(), named);
                let guest = Guest::start(guest(cluster)).await.context("failed to use the cluster")?;
                Provider::Guest(Box::new(guest))
            }
            ControlPlaneKind::Local | ControlPlaneKind::Mock => {
                let mut config = local::Config::new(assets(wanted.kind)?, &directory);
                (config.users, config.state_directory) = (users.clone(), state_directory.clone());
                let local = Local::start(config).await.context("failed to start the local control plane")?;
                Provider::Local(Box::new(local))
            }
        };
        let crd = kind::manifests::package_crd().context("failed to read the Package CRD")?;
        let real = Self(provider);
        let url = real.0.url();
        let api = Api { url: &url, ca_pem: real.0.ca_pem(), token: real.token(HARNESS), mark: real.0.mark() };
        install::crd(&api, &crd).await.context("failed to install the Package CRD")?;
        Ok(real)
    }

    /// The kind of control plane and its features.
    pub(super) fn provider(&self) -> &Provider {
        &self.0
    }

    /// Gets credentials for an existing account of this user.
    pub(super) async fn admit(&mut self, user: &str) -> Result<()> {
        self.0.admit(user).await.with_context(|| format!("failed to let {user} in"))
    }

    /// The token of a user; empty for an unknown user.
    pub(super) fn token(&self, user: &str) -> &str {
        self.0.token(user).unwrap_or_default()
    }

    pub(super) fn describe(&self) -> String {
        let program = if matches!(self.0, Provider::Local(_)) { "kube-apiserver" } else { "Kubernetes" };
        format!("{}, {program} {}", self.0.kind(), self.0.version())
    }

    pub(super) async fn stop(self) {
        if let Err(error) = self.0.stop().await {
            let error = anyhow::Error::from(error);
            crate::out::err!(
                "longhaul: objects are left in the cluster; `longhaul cluster down` removes them: {error:#}"
            );
        }
    }
}

fn assets(kind: ControlPlaneKind) -> Result<PathBuf> {
    if let Some(assets) = std::env::var_os(ASSETS).filter(|assets| !assets.is_empty()) {
        return Ok(PathBuf::from(assets));
    }
    if kind.has_nodes() {
        bail!(
            "`controlPlane: {{kind: node}}` needs etcd and the programs of a Kubernetes release: set {ASSETS} to the folder that \
             holds them"
        );
    }
    bail!(
        "`controlPlane: {{kind: local}}` needs etcd and kube-apiserver: set {ASSETS} to the folder that holds both \
         (`longhaul cluster fetch` downloads them)"
    )
}
