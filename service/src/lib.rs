//! The service: a lean admission webhook and watcher for Kubernetes.
//!
//! This crate is the program: it parses, builds the runtime, starts the roles of a list, waits and drains. What a role does is in its own
//! crate; what all roles share is in `service-core`. It knows nothing of whoever tests it.

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
