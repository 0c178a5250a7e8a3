//! The registry client: from a written image reference to the digest that the registry serves for it.
//!
//! This crate owns references, hosts, credentials, tokens and the requests (OCI distribution specification 1.1, Docker
//! token authentication). Every failure has a class. Only tokens are cached here.

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
