//! Tests of real, unmodified clients against the mock API server.
//!
//! Every client must be able to read and write objects. With kube-rs and kubectl, a list and its changes are also
//! tested during two faults: resets, and 410 as HTTP status and as `ERROR` event. `scenarios/tests/e2e/clients.rs`
//! tests other clients without faults; `cargo xtask matrix` tests them with faults. If a client is missing and cannot
//! be installed, its test is skipped with a line that names the requirement. The repository contains no client: npm and
//! Python packages are installed once, in the user's cache folder (`longhaul/clients/<name>-<version>`).
//!
//! The tests assert only the behaviour of the server. The tests print the behaviour of a client under a fault but do
//! not check it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod controller_manager;
mod kube_rs;
mod kubectl;
mod node;
mod program;
mod python;
mod world;
