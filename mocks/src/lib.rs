//! The pretend outside world: what a subject talks to when there is no cluster.
//!
//! Owns the mock registry and the certificates that the mocks serve with. It must not know what a run or a verdict is.

pub mod pki;
pub mod registry;
