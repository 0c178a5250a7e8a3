//! The registry client: finds the digest that a registry returns for an image reference.
//!
//! This crate owns references, hosts, credentials, tokens and requests (OCI distribution specification 1.1, Docker
//! token authentication). Every failure of a lookup has a class. The client of this crate caches only tokens.

mod challenge;
mod client;
pub mod config;
pub mod events;
mod hosts;
mod keychain;
mod limiter;
pub mod lock;
mod manifest;
mod metrics;
mod pieces;
mod reference;
mod url;
pub mod verdicts;
mod wanted;

pub use challenge::{Challenge, token};
pub use client::{Piece, Registry};
pub use hosts::{Hosts, HostsError};
pub use keychain::{Brought, Credential, Keyring, KeyringError, Proof, PullSecrets};
pub use manifest::{Kind, ManifestError, check};
pub use metrics::Metrics;
pub use pieces::{Pieces, Question};
pub use reference::{FullName, Image, Reference, ReferenceError};
pub use wanted::Wanted;
