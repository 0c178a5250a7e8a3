//! Tests of the mock registry over real sockets: requests of the specification, requests of real clients, and a
//! comparison with the registry `distribution`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod auth;
mod client;
mod distribution;
mod faults;
mod protocol;
mod skopeo;
