//! The service: a lean admission webhook and watcher for Kubernetes.
//!
//! This crate is the program: it parses the command line, builds the runtime, starts roles, waits and drains. Each role
//! has its own crate; `service-core` has the code that roles share. The service crates use no code of the test harness.

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
