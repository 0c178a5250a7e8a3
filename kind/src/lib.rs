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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each error of this crate answers for itself, also as the cause of another error.
    #[test]
    fn every_type_of_error_says_whether_a_program_is_missing() {
        let no_program = || local::Error::NoProgram { program: "etcd", assets: "/none".into() };
        let theirs = || cluster::Error::Theirs { name: "x".to_owned() };
        let missing: [&(dyn std::error::Error + 'static); 5] = [
            &no_program(),
            &cluster::Error::Local(no_program()),
            &containers::Error::Missing("kind".to_owned()),
            &guest::Error::NoKubectl,
            &guest::Error::Containers(containers::Error::Missing("kind".to_owned())),
        ];
        for error in missing {
            assert!(misses_program(error), "{error}");
        }
        let other: [&(dyn std::error::Error + 'static); 2] = [&theirs(), &std::fmt::Error];
        for error in other {
            assert!(!misses_program(error), "{error}");
        }
    }
}
