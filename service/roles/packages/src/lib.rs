//! The role `packages`: watches and reconciles Packages.
//!
//! This crate owns the reconciler, its queue, and the election of the replica that reconciles. `service-watch` owns the
//! view of existing objects.

pub mod config;
mod controller;
pub mod events;
mod reconcile;
mod role;

pub use role::PackagesRole;
