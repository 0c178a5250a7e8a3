//! The role `watch`: Packages are watched and reconciled.
//!
//! Owns the reconciler, its queue, and which replica works. The view of what exists belongs to `service-watch`.

pub mod config;
mod controller;
mod reconcile;
mod role;

pub use role::Packages;
