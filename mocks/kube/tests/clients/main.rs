//! Real, unmodified clients against the mock API server.
//!
//! Owns what every client must be able to do: read and write objects, and with kube-rs and kubectl see a list and its changes, through a
//! reset and both forms of 410. What other clients see
//! without a fault is in `scenarios/tests/e2e/clients.rs`, what with one in the matrix, which is played by hand. A client that is missing here and cannot be installed is skipped with a line
//! that says what it needs. Nothing of a client is kept in the tree: npm and Python packages go to the user's cache
//! folder (`longhaul/clients/<name>-<version>`), once.
//!
//! What is asserted is the server's duty. How a client came through a fault is its own business: it is printed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod controller_manager;
mod kube_rs;
mod kubectl;
mod node;
mod program;
mod python;
mod world;
