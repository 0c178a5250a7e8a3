//! Tests of the service in one process over real sockets: a small registry and a small API server, both in this folder.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as the tests do")]

mod admission;
#[cfg(feature = "alerting")]
mod alerts;
mod binary;
mod breaker;
#[cfg(feature = "own-certificates")]
mod certificates;
mod edge;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "files")]
mod function_hosts;
#[cfg(feature = "verify")]
mod golden;
mod hostile;
mod keychain;
mod lease;
#[cfg(feature = "verify")]
mod memory;
mod operations;
#[cfg(feature = "verify")]
mod own_limits;
mod proxy;
mod reconcile;
mod registration;
mod replicas;
mod review;
#[cfg(all(feature = "verify", feature = "shared-cache"))]
mod shared_cache;
mod support;
#[cfg(all(feature = "verify", feature = "validator", feature = "alerting"))]
mod topology;
#[cfg(feature = "verify")]
mod verify;
mod watch;
mod watcher;
