//! Real clusters: the manifests to apply, and control planes made of real binaries.
//!
//! Owns the manifests, and starting and stopping real control planes. It must not know the mocks, the load or the
//! reports: the runner of a scenario chooses between this crate and the mocks.

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
