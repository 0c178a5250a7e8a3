//! The simulated scheduler, kubelets and controllers of a cluster.
//!
//! Owns one [`Machine`]. The machine observes every change of the kinds in [`Kind`]. [`Machine::step`] gets the time
//! and returns the writes that the programs of a real cluster would make next, each with the program ([`Author`]).
//! Statuses are those of kube-controller-manager 1.34. The crate is pure: it has no clock, no socket and no store. Each
//! kind of workload has its own file.

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

/// The settings of simulated workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Time from a Pod's scheduling until the Pod is ready. Claims are bound and load balancers get addresses after the
    /// same time.
    pub ready_after: SignedDuration,
    /// How long a Pod runs if its `restartPolicy` is `Never` or `OnFailure` and no Job owns it; `None` means for ever.
    /// A Job's Pods run for `ready_after`.
    pub ends_after: Option<SignedDuration>,
    /// Number of nodes that the simulation creates at the start; a `DaemonSet` has a Pod on each node.
    pub nodes: u32,
    /// The seed that decides which workloads a fault hits.
    pub seed: u64,
}

#[cfg(test)]
mod tests;
