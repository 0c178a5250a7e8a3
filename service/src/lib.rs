//! The service: a lean admission webhook and watcher for Kubernetes.
//!
//! This crate owns what one `longhaul-service` process does: it pins image tags to digests and verifies signatures at admission, keeps a
//! complete view of what it watches, and offers that of Deployments as an API. It knows nothing of whoever tests it.
//!
//! Rooms and who may enter whom: `run` composes everything; `admission` and `watch` do not import each other; `replicas` stands on
//! `watch`; all talk to the outside through `wire`, and to the API server through `kube`, which imports no room but `wire` and `config`;
//! `inject` is a command beside the roles and imports only `kube`, `registry` and `config`; so is `manifests`, with `config`;
//! `own` makes the webhook's certificates and `registration` looks at how it is registered, both through `kube`; `own` shares the
//! election with `watch`;
//! `validator` looks for signatures through `registry` and knows no reviews; `verdicts` imports no other room, `config` asks `wire` for
//! the suites that there are; `authority`, the spelling of `host:port`, and `logs` are for everybody.

pub mod admission;
mod allocator;
pub mod authority;
#[cfg(feature = "certs-dev")]
mod certs;
pub mod cli;
pub mod config;
pub mod edge;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
pub mod inject;
pub mod kube;
pub mod logs;
pub mod manifests;
#[cfg(feature = "own-certificates")]
pub mod own;
#[cfg(feature = "planted-bugs")]
pub mod planted;
pub mod registration;
pub mod registry;
pub mod replicas;
pub mod run;
pub mod share;
pub mod validator;
pub mod verdicts;
pub mod watch;
pub mod wire;
