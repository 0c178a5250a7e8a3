//! The code that all roles share: listeners, HTTP client, API server client, logs, configuration, health and metrics.
//!
//! This crate knows no role; [`role`] defines the interface of a role.

pub mod alert;
pub mod allocator;
pub mod authority;
pub mod config;
pub mod edge;
pub mod judge;
pub mod known;
pub mod kube;
pub mod logs;
pub mod role;
pub mod share;
pub mod watches;
pub mod wire;
