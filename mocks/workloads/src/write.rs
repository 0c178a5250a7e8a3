//! Writes, and their authors.

use serde_json::Value;

use super::kind::Key;

/// A program of a cluster that writes, under its real name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// A controller of kube-controller-manager, by its service account: `deployment-controller`.
    Controller(&'static str),
    Scheduler,
    /// The kubelet of a node.
    Kubelet(String),
}

impl Author {
    /// For example `system:serviceaccount:kube-system:deployment-controller`.
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

/// The kind of a write.
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

#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The program that writes.
    pub by: Author,
    /// The object; the name is empty if the server is to make one.
    pub key: Key,
    pub verb: Verb,
    pub body: Value,
}

/// The writes for one object, in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The object that the step processed.
    pub of: Key,
    /// At least one.
    pub writes: Vec<Write>,
    /// Whether writes were held back, because one was refused shortly before.
    pub(crate) held_back: bool,
}
