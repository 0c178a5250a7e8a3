//! Tests of real, unmodified clients against the mock API server.
//!
//! Owns the duties towards every client: to read and write objects and, with kube-rs and kubectl, to see a list and its
//! changes, through a reset and both forms of 410. `scenarios/tests/e2e/clients.rs` covers other clients without
//! faults; the matrix, which is run by hand, covers them with faults. A missing client that cannot be installed is
//! skipped with a line that names the requirement. No part of a client is kept in the tree: npm and Python packages go
//! to the user's cache folder (`longhaul/clients/<name>-<version>`), once.
//!
//! The tests assert the server's duty. A client's behaviour under a fault is only printed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod controller_manager;
mod kube_rs;
mod kubectl;
mod node;
mod program;
mod python;
mod world;
