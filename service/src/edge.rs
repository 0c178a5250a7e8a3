//! The way in: listeners, server TLS, drain, and the health endpoints.
//!
//! Owns sockets and their limits. It does not know what a review or a watch is; it gets a handler and probes.

mod drain;
mod health;
mod listener;
mod tls;

pub use drain::{Drain, Phase};
pub use health::{Health, Probe};
pub use listener::{Listener, Protocols};
pub use tls::{Certificate, CertificateError};
