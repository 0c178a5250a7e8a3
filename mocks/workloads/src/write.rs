//! Writes of simulated programs, and their authors.

use serde_json::Value;

use super::kind::Key;

/// A program of a real cluster in whose name a write is made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// A controller of kube-controller-manager with the name of its service account: `deployment-controller`.
    Controller(&'static str),
    Scheduler,
    /// The kubelet of the named node.
    Kubelet(String),
}

impl Author {
    /// The user name: `system:serviceaccount:kube-system:deployment-controller`.
    pub fn user(&self) -> String {
        match self {
            Self::Controller(name) => format!("system:serviceaccount:kube-system:{name}"),
            Self::Scheduler => "system:kube-scheduler".to_owned(),
            Self::Kubelet(node) => format!("system:node:{node}"),
        }
    }

    /// The groups of the user, in addition to `system:authenticated`.
    pub fn groups(&self) -> Vec<String> {
        let groups: &[&str] = match self {
            Self::Controller(_) => &["system:serviceaccounts", "system:serviceaccounts:kube-system"],
            Self::Scheduler => &[],
            Self::Kubelet(_) => &["system:nodes"],
        };
        groups.iter().map(ToString::to_string).collect()
    }

    /// The name of the program, which is also the field manager.
    pub fn program(&self) -> &'static str {
        match self {
            Self::Controller("service-controller") => "cloud-controller-manager",
            Self::Controller(_) => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubelet(_) => "kubelet",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// POST of `body`.
    Create,
    /// PUT of `body`.
    Update,
    /// PUT of `body` to the subresource `status`.
    UpdateStatus,
    /// A strategic merge patch.
    Patch,
    /// A strategic merge patch of the subresource `status`.
    PatchStatus,
    Bind,
    /// DELETE, with `body` as its options.
    Delete,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The program in whose name the write is made.
    pub by: Author,
    /// The object to write; the name is empty if the server makes the name.
    pub key: Key,
    pub verb: Verb,
    pub body: Value,
}

/// The writes for one object, in the order in which they are made.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The object whose processing made these writes.
    pub of: Key,
    pub writes: Vec<Write>,
    /// Whether further writes for the object were held back because a write was refused shortly before.
    pub(crate) held_back: bool,
}
