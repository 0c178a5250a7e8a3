//! The role `packages`: watches and reconciles Packages.
//!
//! This crate owns the reconciler, its queue, and the choice of the working replica. The view of existing objects
//! belongs to `service-watch`.

pub mod config;
mod controller;
pub mod events;
mod reconcile;
mod role;

pub use role::PackagesRole;
