//! The control planes of real programs that a run can use, and their capabilities.
//!
//! The program that runs a scenario uses a [`Provider`] and, if Pods can run, its [`Nodes`]. A new kind of control
//! plane is a new variant of [`Provider`].

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::guest::{self, Guest};
use crate::leaders::Leaders;
use crate::local::Local;
use crate::machinery::Machinery;
use crate::node::{self, Firewall, Node, Pods};

/// A running control plane.
#[derive(Debug)]
pub enum Provider {
    /// etcd and kube-apiserver alone, as processes on this machine.
    Local(Box<Local>),
    /// One complete node on this machine, in its own namespaces.
    Node(Box<Node>),
    /// A foreign cluster: a kind cluster, or the user's own cluster.
    Guest(Box<Guest>),
}

/// The nodes of a control plane, which run Pods.
#[derive(Debug, Clone, Copy)]
pub struct Nodes<'a>(Which<'a>);

#[derive(Debug, Clone, Copy)]
enum Which<'a> {
    Node(&'a Node),
    Guest(&'a Guest),
}

/// How this machine reaches a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This machine connects to the Service's own address.
    Service,
    /// This machine connects to a port that every node opens for the Service; the value is the address of a node.
    NodePort(IpAddr),
}

/// An operation on the nodes failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operation failed on the node that runs on this machine.
    #[error(transparent)]
    Node(#[from] node::Error),
    /// The operation failed in a kind cluster or in the user's own cluster.
    #[error(transparent)]
    Guest(#[from] guest::Error),
}

impl Provider {
    /// The kind of control plane: `local`, `node`, `kind` or `kubeconfig`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::Node(_) => "node",
            Self::Guest(guest) => guest.kind(),
        }
    }

    /// The URL of the API server: `https://host:port`
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

    /// The certificate of the API server's authority, as PEM.
    pub fn ca_pem(&self) -> &str {
        match self {
            Self::Local(local) => local.access().ca_pem(),
            Self::Node(node) => node.access().ca_pem(),
            Self::Guest(guest) => guest.ca_pem(),
        }
    }

    /// The bearer token of a user that may log in.
    pub fn token(&self, user: &str) -> Option<&str> {
        match self {
            Self::Local(local) => local.access().token(user),
            Self::Node(node) => node.access().token(user),
            Self::Guest(guest) => guest.token(user),
        }
    }

    /// A kubeconfig that contains all certificates and tokens.
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        match self {
            Self::Local(local) => local.access().kubeconfig(user),
            Self::Node(node) => node.access().kubeconfig(user),
            Self::Guest(guest) => guest.kubeconfig(user),
        }
    }

    /// Lets a user log in whose account was made after the start. Only a foreign cluster needs this call; in other
    /// control planes all users can log in from the start.
    pub async fn admit(&mut self, user: &str) -> Result<(), Error> {
        match self {
            Self::Local(_) | Self::Node(_) => Ok(()),
            Self::Guest(guest) => Ok(guest.admit(user).await?),
        }
    }

    /// The path of the API server's audit log; `None` if the run does not configure the API server.
    pub fn audit_log(&self) -> Option<PathBuf> {
        match self {
            Self::Local(local) => Some(local.access().audit_log()),
            Self::Node(node) => Some(node.access().audit_log()),
            Self::Guest(_) => None,
        }
    }

    /// The folder in which the control plane's programs write their logs, if the folder is on this machine.
    pub fn logs(&self) -> Option<PathBuf> {
        match self {
            Self::Local(local) => Some(local.access().logs()),
            Self::Node(node) => Some(node.access().logs()),
            Self::Guest(_) => None,
        }
    }

    /// Writes the logs of a cluster whose log folder is not on this machine.
    pub async fn keep_logs(&self, folder: &Path) -> Result<(), Error> {
        match self {
            Self::Local(_) | Self::Node(_) => Ok(()),
            Self::Guest(guest) => Ok(guest.keep_logs(folder).await?),
        }
    }

    /// The address at which the control plane reaches servers on this machine.
    pub fn machine(&self) -> Ipv4Addr {
        match self {
            Self::Local(_) => Ipv4Addr::LOCALHOST,
            Self::Node(node) => node.machine(),
            Self::Guest(guest) => guest.machine(),
        }
    }

    /// Key and value of the label that every object of the run must have, so that it can be removed.
    pub fn mark(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Local(_) | Self::Node(_) => None,
            Self::Guest(guest) => Some((guest::LABEL, guest.mark())),
        }
    }

    /// The nodes of the control plane, if it has any.
    pub fn nodes(&self) -> Option<Nodes<'_>> {
        match self {
            Self::Local(_) => None,
            Self::Node(node) => Some(Nodes(Which::Node(node))),
            Self::Guest(guest) => Some(Nodes(Which::Guest(guest))),
        }
    }

    /// A search for the processes of the control plane's programs, so that a caller can end one; `None` in a foreign
    /// cluster.
    pub fn machinery(&self) -> Option<Machinery> {
        match self {
            Self::Local(local) => Some(local.machinery()),
            Self::Node(node) => Some(node.machinery()),
            Self::Guest(_) => None,
        }
    }

    /// The control planes of the cluster, so that a caller can pause one; `None` if the cluster has only one or a run
    /// must not pause it.
    pub fn leaders(&self) -> Option<Leaders> {
        match self {
            Self::Local(_) | Self::Node(_) => None,
            Self::Guest(guest) => guest.leaders(),
        }
    }

    /// The program of the control plane that ended unexpectedly, and how it ended.
    pub fn ended(&self) -> Option<String> {
        match self {
            Self::Local(local) => local.ended().map(|(program, how)| format!("{program} ended: {how}")),
            Self::Node(node) => node.ended().map(|how| format!("the node ended: {how}")),
            Self::Guest(_) => None,
        }
    }

    /// Stops the control plane; in a foreign cluster, removes the objects that the run made.
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
    /// A search for the processes of the Pods on these nodes.
    pub fn pods(&self) -> Pods {
        match self.0 {
            Which::Node(node) => node.pods(),
            Which::Guest(guest) => guest.pods(),
        }
    }

    /// Loads the images of an archive in the format of `docker save` into the nodes. A cluster from a kubeconfig loads
    /// no archive: it must have or pull the images itself.
    pub async fn load(&self, archive: Vec<u8>) -> Result<(), Error> {
        match self.0 {
            Which::Node(node) => Ok(node.load(archive).await?),
            Which::Guest(guest) => Ok(guest.load(archive).await?),
        }
    }

    /// The firewall rules that drop packets of Pods; `None` if the cluster's network enforces policies itself.
    pub fn firewall(&self) -> Option<Firewall> {
        match self.0 {
            Which::Node(node) => Some(node.firewall()),
            Which::Guest(_) => None,
        }
    }

    /// How this machine reaches Services.
    pub fn reach(&self) -> Reach {
        match self.0 {
            Which::Node(_) => Reach::Service,
            Which::Guest(guest) => guest.node_address().map_or(Reach::Service, Reach::NodePort),
        }
    }
}
