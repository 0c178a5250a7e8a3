//! The keychain: whose credentials a registry is shown.
//!
//! Owns docker configurations and the pull secrets of pods and their service accounts. Which of several credentials is tried
//! when, and what a registry makes of it, is the client's business.

mod keyring;
mod pull_secrets;

pub use keyring::{Credential, Keyring, KeyringError, Proof};
pub use pull_secrets::{Brought, PullSecrets};
