//! The role `validator`: rules on images for other processes and for Gatekeeper.
//!
//! This crate owns the answers to inquiries and to Gatekeeper's requests. A [`service_core::judge::Judge`] verifies the
//! images; `service-contract` owns listeners, limits and message formats.

pub mod command;
mod config;
mod paths;
mod provider;
mod role;

pub use config::Validator;
pub use role::ValidatorRole;
