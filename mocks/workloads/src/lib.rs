//! The simulated scheduler, kubelets and controllers: objects and the time go in, writes come out.
//!
//! Owns one [`Machine`]. It observes every change of the kinds in [`Kind`]. [`Machine::step`] returns the writes that
//! the programs of a real cluster would make next, each with its author ([`Author`]). The status is that of
//! kube-controller-manager 1.34. Pure: it has no clock, no socket and no store. Each kind of workload is one file.

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

/// The behaviour of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Time from a Pod's scheduling until it is ready; claims are bound and load balancers get addresses after the same
    /// time.
    pub ready_after: SignedDuration,
    /// How long a Pod runs whose containers may end (`restartPolicy: Never` or `OnFailure`) and that belongs to no Job;
    /// `None` means for ever. Pods of Jobs run for `ready_after`.
    pub ends_after: Option<SignedDuration>,
    /// Nodes that are made at the start; a `DaemonSet` has a Pod on each.
    pub nodes: u32,
    /// Decides which workloads a fault hits.
    pub seed: u64,
}

#[cfg(test)]
mod tests;
