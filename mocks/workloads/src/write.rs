//! Writes, and their authors.

use serde_json::Value;

use super::kind::Key;

/// A program of a cluster that writes, under the name that it has in a real one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// A controller of kube-controller-manager, by its service account: `deployment-controller`.
    Controller(&'static str),
    /// The scheduler.
    Scheduler,
    /// The kubelet of a node.
    Kubelet(String),
}

impl Author {
    /// `system:serviceaccount:kube-system:deployment-controller`.
    pub fn user(&self) -> String {
        match self {
            Self::Controller(name) => format!("system:serviceaccount:kube-system:{name}"),
            Self::Scheduler => "system:kube-scheduler".to_owned(),
            Self::Kubelet(node) => format!("system:node:{node}"),
        }
    }

    /// The groups of that user, besides `system:authenticated`.
    pub fn groups(&self) -> Vec<String> {
        let groups: &[&str] = match self {
            Self::Controller(_) => &["system:serviceaccounts", "system:serviceaccounts:kube-system"],
            Self::Scheduler => &[],
            Self::Kubelet(_) => &["system:nodes"],
        };
        groups.iter().map(ToString::to_string).collect()
    }

    /// The program, which is the field manager as well.
    pub fn program(&self) -> &'static str {
        match self {
            Self::Controller("service-controller") => "cloud-controller-manager",
            Self::Controller(_) => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubelet(_) => "kubelet",
        }
    }
}

/// How something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// POST of the body.
    Create,
    /// PUT of the body.
    Update,
    /// PUT of the body to `status`.
    UpdateStatus,
    /// A strategic merge patch.
    Patch,
    /// A strategic merge patch of `status`.
    PatchStatus,
    /// POST of a `Binding`.
    Bind,
    /// DELETE, with the body as its options.
    Delete,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The program that writes.
    pub by: Author,
    /// The object; the name is empty where the server is to make one.
    pub key: Key,
    /// How.
    pub verb: Verb,
    /// What.
    pub body: Value,
}

/// What is to be written for one object, in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The object that was looked at.
    pub of: Key,
    /// At least one.
    pub writes: Vec<Write>,
    /// Something was held back, because it was refused a moment ago.
    pub(crate) held_back: bool,
}
