//! The service: a lean admission webhook and watcher for Kubernetes.
//!
//! This crate owns what one `longhaul-service` process does: it pins image tags to digests at admission and keeps a
//! complete view of the packages it watches. It knows nothing of whoever tests it.
//!
//! Rooms and who may enter whom: `run` composes everything; `admission` and `watch` do not import each other;
//! both talk to the outside through `wire`, and to the API server through `kube`, which imports no room but `wire` and `config`;
//! `inject` is a command beside the roles and imports only `kube`, `registry` and `config`;
//! `verdicts` and `config` import no other room; `authority`, the spelling of `host:port`, is for everybody.

pub mod admission;
mod allocator;
pub mod authority;
pub mod cli;
pub mod config;
pub mod edge;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
pub mod inject;
pub mod kube;
mod log_lines;
#[cfg(feature = "planted-bugs")]
pub mod planted;
pub mod registry;
pub mod run;
pub mod verdicts;
pub mod watch;
pub mod wire;
