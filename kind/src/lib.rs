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

/// Whether an error of this crate means that a program or setting of this machine is missing.
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
