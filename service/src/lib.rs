//! The service: a lean admission webhook and watcher for Kubernetes.
//!
//! This crate is the program: it parses, builds the runtime, starts the roles of a list, waits and drains. Each role
//! has its own crate, and `service-core` has the parts that all roles share. The service knows nothing of its test
//! harness.

pub mod cli;
pub mod config;
pub mod events;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(feature = "admission")]
pub mod manifests;
pub mod roles;
pub mod run;
