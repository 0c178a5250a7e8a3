//! The role validator: verdicts about images for other processes, and for Gatekeeper.
//!
//! This crate owns the answers of its paths. The judge behind the interface [`service_core::judge::Judge`] verifies
//! images; listening, limits and the forms on the wire belong to `service-contract`.

pub mod command;
mod config;
mod paths;
mod provider;
mod role;

pub use config::Validator;
pub use role::ValidatorRole;
