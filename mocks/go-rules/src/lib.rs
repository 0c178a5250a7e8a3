//! Rules of programs written in Go that serde and rustls do not share: which answers kube-apiserver believes ([`admission`]), and what TLS
//! in Go decides otherwise ([`tls`]).
//!
//! A mock of such a program and a judge of one decide alike, because both ask here. Pure: no connection, no key.

pub mod admission;
pub mod tls;
