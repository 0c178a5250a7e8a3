//! The service: a lean admission webhook and watcher for Kubernetes.
//!
//! This crate is the program: it parses, builds the runtime, starts the roles of a list, waits and drains. Each role
//! has its own crate, and `service-core` has the parts that all roles share. The service knows nothing of its test
//! harness.

#[cfg(feature = "certs-dev")]
mod certs;
pub mod cli;
pub mod config;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(feature = "manager")]
pub mod manifests;
#[cfg(feature = "planted-bugs")]
pub mod planted;
pub mod roles;
pub mod run;
