//! The credentials that may be sent to a registry.
//!
//! This module owns docker configurations, and the pull secrets of Pods and their service accounts. The client decides
//! in which order credentials are tried, and interprets the registry's answers.

mod keyring;
mod pull_secrets;

pub use keyring::{Credential, Keyring, KeyringError, Proof};
pub use pull_secrets::{Brought, PullSecrets};
