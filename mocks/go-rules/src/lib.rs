//! Rules of Go programs that differ from serde and rustls: the webhook answers that kube-apiserver accepts
//! ([`admission`]), and decisions in TLS ([`tls`]).
//!
//! A mock of a Go program and a judge of a Go program both use these rules, so they decide alike. Pure: no connection,
//! no key.

pub mod admission;
pub mod tls;
