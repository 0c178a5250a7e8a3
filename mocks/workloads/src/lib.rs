//! What scheduler, kubelet and controllers do to workloads: objects and the time go in, writes come out.
//!
//! Owns one [`Machine`]. It observes every change of the kinds in [`Kind`], and [`Machine::step`] answers the writes that the programs of a
//! real cluster would make next, each write with its author ([`Author`]). The status is the one that kube-controller-manager 1.34 writes. Pure: it has no
//! clock, no socket and no store. Each kind of workload is one file.

mod claim;
mod clocks;
mod conditions;
mod daemon_set;
mod deployment;
mod endpoints;
mod fields;
mod job;
mod kind;
mod machine;
mod node;
mod objects;
mod pod;
mod queue;
mod replica_set;
mod revisions;
mod scene;
mod service;
mod stateful_set;
mod template;
mod trouble;
mod write;

pub use kind::{Key, Kind};
pub use machine::Machine;
pub use trouble::{Hit, How, Trouble};
pub use write::{Author, Batch, Verb, Write};

use jiff::SignedDuration;

/// How workloads behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// From the moment a Pod has a node to the moment it is ready; a claim is bound and a load balancer has an address as late.
    pub ready_after: SignedDuration,
    /// How long a Pod runs whose containers may end (`restartPolicy: Never` or `OnFailure`) and that belongs to no Job; none for ever. Pods of Jobs
    /// run for `ready_after`.
    pub ends_after: Option<SignedDuration>,
    /// Nodes that are made at the start; a `DaemonSet` has a Pod on each.
    pub nodes: u32,
    /// Decides the workloads that a fault strikes.
    pub seed: u64,
}

#[cfg(test)]
mod tests;
