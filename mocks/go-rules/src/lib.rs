//! Rules of programs written in Go that differ from serde and rustls: the webhook answers that kube-apiserver accepts
//! ([`admission`]), and the decisions of TLS in Go ([`tls`]).
//!
//! A mock of such a program and a judge of one decide alike, because both use these rules. Pure: no connection, no key.

pub mod admission;
pub mod tls;
