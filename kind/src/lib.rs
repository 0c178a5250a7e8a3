//! Real clusters: the manifests that Longhaul applies to clusters, and control planes made of real Kubernetes programs.
//!
//! This crate owns the manifests, and starts and stops real control planes. This crate does not use the crates of the
//! mocks, the load generator and the reports. The program that runs a scenario chooses between this crate and the
//! mocks.

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
mod missing;
pub mod node;
mod programs;
pub mod provider;
pub mod state;
mod step;

pub use missing::MissingProgram;
