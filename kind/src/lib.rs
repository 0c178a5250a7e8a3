//! The real outside world: what is applied to a cluster, and control planes made of real binaries.
//!
//! Owns the manifests and bringing real control planes up and down. It must not know the mocks, the load or the reports:
//! whoever runs a scenario chooses between this crate and the mocks.

pub mod access;
pub mod cluster;
pub mod containers;
pub mod fetch;
pub mod guest;
pub mod labelled;
pub mod leaders;
pub mod local;
pub mod machinery;
pub mod manifests;
pub mod node;
mod programs;
pub mod provider;
pub mod state;
mod step;
