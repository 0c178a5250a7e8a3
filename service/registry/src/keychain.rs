//! The keychain: the credentials that may be sent to a registry.
//!
//! This module owns docker configurations and the pull secrets of pods and their service accounts. The client decides
//! the order of tries and interprets the registry's answers.

mod keyring;
mod pull_secrets;

pub use keyring::{Credential, Keyring, KeyringError, Proof};
pub use pull_secrets::{Brought, PullSecrets};
