//! Tests of the mock registry over real sockets: the specification's requests, real clients, and another registry
//! beside it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod auth;
mod client;
mod distribution;
mod faults;
mod protocol;
mod skopeo;
