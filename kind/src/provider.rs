//! The control planes of real programs that a run can use, and their abilities.
//!
//! The seam: the runner of a scenario knows a [`Provider`] and, if Pods run, its [`Nodes`]. A new provider is a variant
//! here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::guest::{self, Guest};
use crate::leaders::Leaders;
use crate::local::Local;
use crate::machinery::Machinery;
use crate::node::{self, Firewall, Node, Pods};

/// A control plane that is up.
#[derive(Debug)]
pub enum Provider {
    /// etcd and kube-apiserver alone, as processes of this machine.
    Local(Box<Local>),
    /// One whole node in namespaces of its own on this machine.
    Node(Box<Node>),
    /// A cluster of kind, or the user's own.
    Guest(Box<Guest>),
}

/// Nodes that run Pods.
#[derive(Debug, Clone, Copy)]
pub struct Nodes<'a>(Which<'a>);

#[derive(Debug, Clone, Copy)]
enum Which<'a> {
    Node(&'a Node),
    Guest(&'a Guest),
}

/// The address at which a Service is reached from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Its own address.
    Service,
    /// A port that every node opens for it; this is a node's address.
    NodePort(IpAddr),
}

/// A failure of nodes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The node of this machine.
    #[error(transparent)]
    Node(#[from] node::Error),
    /// A cluster of kind, or the user's own.
    #[error(transparent)]
    Guest(#[from] guest::Error),
}

impl Provider {
    /// `local`, `node`, `kind` or `kubeconfig`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::Node(_) => "node",
            Self::Guest(guest) => guest.kind(),
        }
    }

    /// `https://host:port`
    pub fn url(&self) -> String {
        match self {
            Self::Local(local) => local.access().url(),
            Self::Node(node) => node.access().url(),
            Self::Guest(guest) => guest.url().to_owned(),
        }
    }

    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Local(local) => local.access().address(),
            Self::Node(node) => node.access().address(),
            Self::Guest(guest) => guest.address(),
        }
    }

    /// The version that the API server reports, for example `v1.34.1`.
    pub fn version(&self) -> &str {
        match self {
            Self::Local(local) => local.access().version(),
            Self::Node(node) => node.access().version(),
            Self::Guest(guest) => guest.version(),
        }
    }

    /// The certificate authority of the API server.
    pub fn ca_pem(&self) -> &str {
        match self {
            Self::Local(local) => local.access().ca_pem(),
            Self::Node(node) => node.access().ca_pem(),
            Self::Guest(guest) => guest.ca_pem(),
        }
    }

    /// The bearer token of a user who was admitted.
    pub fn token(&self, user: &str) -> Option<&str> {
        match self {
            Self::Local(local) => local.access().token(user),
            Self::Node(node) => node.access().token(user),
            Self::Guest(guest) => guest.token(user),
        }
    }

    /// A kubeconfig with everything in it.
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        match self {
            Self::Local(local) => local.access().kubeconfig(user),
            Self::Node(node) => node.access().kubeconfig(user),
            Self::Guest(guest) => guest.kubeconfig(user),
        }
    }

    /// Admits a user whose account was made meanwhile. Outside of a guest's cluster all users are admitted from the
    /// beginning.
    pub async fn admit(&mut self, user: &str) -> Result<(), Error> {
        match self {
            Self::Local(_) | Self::Node(_) => Ok(()),
            Self::Guest(guest) => Ok(guest.admit(user).await?),
        }
    }

    /// The audit log of the API server; none if the run does not configure it.
    pub fn audit_log(&self) -> Option<PathBuf> {
        match self {
            Self::Local(local) => Some(local.access().audit_log()),
            Self::Node(node) => Some(node.access().audit_log()),
            Self::Guest(_) => None,
        }
    }

    /// The folder in which its programs write their logs, if that is on this machine.
    pub fn logs(&self) -> Option<PathBuf> {
        match self {
            Self::Local(local) => Some(local.access().logs()),
            Self::Node(node) => Some(node.access().logs()),
            Self::Guest(_) => None,
        }
    }

    /// Writes the logs of a cluster without a folder of logs.
    pub async fn keep_logs(&self, folder: &Path) -> Result<(), Error> {
        match self {
            Self::Local(_) | Self::Node(_) => Ok(()),
            Self::Guest(guest) => Ok(guest.keep_logs(folder).await?),
        }
    }

    /// The address at which it reaches servers on this machine.
    pub fn machine(&self) -> Ipv4Addr {
        match self {
            Self::Local(_) => Ipv4Addr::LOCALHOST,
            Self::Node(node) => node.machine(),
            Self::Guest(guest) => guest.machine(),
        }
    }

    /// The label that every object made there must have, for its removal: key and value.
    pub fn mark(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Local(_) | Self::Node(_) => None,
            Self::Guest(guest) => Some((guest::LABEL, guest.mark())),
        }
    }

    /// Its nodes, if it has any.
    pub fn nodes(&self) -> Option<Nodes<'_>> {
        match self {
            Self::Local(_) => None,
            Self::Node(node) => Some(Nodes(Which::Node(node))),
            Self::Guest(guest) => Some(Nodes(Which::Guest(guest))),
        }
    }

    /// Its programs, for ending one; none if they are not ours to end.
    pub fn machinery(&self) -> Option<Machinery> {
        match self {
            Self::Local(local) => Some(local.machinery()),
            Self::Node(node) => Some(node.machinery()),
            Self::Guest(_) => None,
        }
    }

    /// Its control planes, for pausing one; none if there is only one, or they are not ours to pause.
    pub fn leaders(&self) -> Option<Leaders> {
        match self {
            Self::Local(_) | Self::Node(_) => None,
            Self::Guest(guest) => guest.leaders(),
        }
    }

    /// The ended part, and how it ended, if it did without a stop.
    pub fn ended(&self) -> Option<String> {
        match self {
            Self::Local(local) => local.ended().map(|(program, how)| format!("{program} ended: {how}")),
            Self::Node(node) => node.ended().map(|how| format!("the node ended: {how}")),
            Self::Guest(_) => None,
        }
    }

    /// Stops it, or removes the objects that were made in it.
    pub async fn stop(self) -> Result<(), Error> {
        match self {
            Self::Local(local) => local.stop().await,
            Self::Node(node) => node.stop().await,
            Self::Guest(guest) => guest.stop().await?,
        }
        Ok(())
    }
}

impl Nodes<'_> {
    /// Their Pods, for finding their processes.
    pub fn pods(&self) -> Pods {
        match self.0 {
            Which::Node(node) => node.pods(),
            Which::Guest(guest) => guest.pods(),
        }
    }

    /// Loads the images of an archive, as `docker save` writes it. A cluster that only a kubeconfig names has the
    /// images, or pulls them.
    pub async fn load(&self, archive: Vec<u8>) -> Result<(), Error> {
        match self.0 {
            Which::Node(node) => Ok(node.load(archive).await?),
            Which::Guest(guest) => Ok(guest.load(archive).await?),
        }
    }

    /// The rules that drop packets of its Pods; none if the network of the cluster enforces policies.
    pub fn firewall(&self) -> Option<Firewall> {
        match self.0 {
            Which::Node(node) => Some(node.firewall()),
            Which::Guest(_) => None,
        }
    }

    /// How Services are reached from this machine.
    pub fn reach(&self) -> Reach {
        match self.0 {
            Which::Node(_) => Reach::Service,
            Which::Guest(guest) => guest.node_address().map_or(Reach::Service, Reach::NodePort),
        }
    }
}
