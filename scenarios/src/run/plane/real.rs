//! A control plane of real programs: etcd and kube-apiserver alone, or a whole node.
//!
//! Owns which of the two it is. What a killed run leaves of it the keeper takes down, and `longhaul cluster status` finds.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kind::access::Access;
use kind::local::{self, Local};
use kind::node::{self, Node};

use super::HARNESS;
use crate::keeper::{self, Order};
use crate::run::account::{Account, MASTERS};
use crate::run::install::{self, Api};

/// The folder with the programs, by the convention of envtest.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// One of them.
pub(in crate::run) enum Real {
    Local(Box<Local>),
    Node(Box<Node>),
}

impl Real {
    /// Starts it and installs the Package resource.
    pub(super) async fn start(has_node: bool, directory: &Path, account: &Account) -> Result<Self> {
        let assets = assets(has_node)?;
        let directory = directory.join("control-plane");
        let user = |name: &str, groups: Vec<String>| local::User { name: name.to_owned(), groups };
        let users = vec![user(&account.user, account.groups.clone()), user(HARNESS, vec![MASTERS.to_owned()])];
        let state_directory = kind::state::default_directory().ok();
        if let Some(state) = &state_directory {
            let order = Order::ControlPlanes(state.clone(), std::process::id());
            keeper::tell(&order).context("failed to start the process that ends control planes after a kill")?;
        }
        let real = if has_node {
            let mut config = node::Config::new(assets, directory, keeper::first_process_of_node());
            (config.users, config.state_directory) = (users, state_directory);
            // What load creates is stored and judged, and runs nowhere: only the subject's own Pods do.
            config.tainted = true;
            Self::Node(Box::new(Node::start(config).await.context("failed to start the node")?))
        } else {
            let mut config = local::Config::new(assets, directory);
            (config.users, config.state_directory) = (users, state_directory);
            Self::Local(Box::new(Local::start(config).await.context("failed to start the local control plane")?))
        };
        let crd = kind::manifests::package_crd().context("failed to read the Package CRD")?;
        let url = real.access().url();
        let api = Api { url: &url, ca_pem: real.access().ca_pem(), token: real.token(HARNESS) };
        install::crd(&api, &crd).await.context("failed to install the Package CRD")?;
        Ok(real)
    }

    /// The way into it.
    pub(super) fn access(&self) -> &Access {
        match self {
            Self::Local(local) => local.access(),
            Self::Node(node) => node.access(),
        }
    }

    /// Where it reaches what listens on this machine.
    pub(super) fn machine(&self) -> Ipv4Addr {
        match self {
            Self::Local(_) => Ipv4Addr::LOCALHOST,
            Self::Node(node) => node.machine(),
        }
    }

    /// A user's token; empty for somebody who is not known.
    pub(super) fn token(&self, user: &str) -> &str {
        self.access().token(user).unwrap_or_default()
    }

    pub(super) fn describe(&self) -> String {
        let kind = if matches!(self, Self::Local(_)) { "local, kube-apiserver" } else { "node, Kubernetes" };
        format!("{kind} {}", self.access().version())
    }

    /// What of it ended, and how, if nobody stopped it.
    pub(super) fn ended(&self) -> Option<String> {
        match self {
            Self::Local(local) => local.ended().map(|(program, how)| format!("{program} ended: {how}")),
            Self::Node(node) => node.ended().map(|how| format!("the node ended: {how}")),
        }
    }

    pub(super) async fn stop(self) {
        match self {
            Self::Local(local) => local.stop().await,
            Self::Node(node) => node.stop().await,
        }
    }
}

fn assets(has_node: bool) -> Result<PathBuf> {
    if let Some(assets) = std::env::var_os(ASSETS).filter(|assets| !assets.is_empty()) {
        return Ok(PathBuf::from(assets));
    }
    if has_node {
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
