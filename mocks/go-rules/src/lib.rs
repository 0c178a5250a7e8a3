//! Rules of Go programs that differ from serde and rustls: the webhook answers that kube-apiserver accepts
//! ([`admission`]), and decisions in TLS ([`tls`]).
//!
//! A mock of a Go program and a judge of a Go program both use these rules, so they decide alike. The crate is pure: it
//! uses no connection and no key.

pub mod admission;
pub mod tls;
