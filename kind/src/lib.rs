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
pub mod node;
mod programs;
pub mod provider;
pub mod state;
mod step;

/// Whether an error of this crate means that this machine lacks a program or a setting.
pub fn misses_program(cause: &(dyn std::error::Error + 'static)) -> bool {
    fn is<E: std::error::Error + 'static>(cause: &(dyn std::error::Error + 'static), misses: fn(&E) -> bool) -> bool {
        cause.downcast_ref::<E>().is_some_and(misses)
    }
    is(cause, cluster::Error::misses_program)
        || is(cause, containers::Error::misses_program)
        || is(cause, guest::Error::misses_program)
        || is(cause, local::Error::misses_program)
        || is(cause, node::Error::misses_program)
}
