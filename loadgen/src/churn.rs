//! Object churn: a constant number of Kubernetes objects under ever-new names, uids and namespaces.
//!
//! A cache that is keyed by name, uid or namespace and never pruned keeps growing, because no name is used again.
//! Operations start at planned times and do not wait for each other, except that operations on one object keep their
//! order. Every object of churn has the label `longhaul.dev/churn=<seed>`, and [`Churn::empty`] removes them all.
//!
//! Several resources can be churned at once. Each section of the scenario has its own plan, worker and namespaces. From
//! the second section on, labels and names have a letter after the seed.
//!
//! Namespaces are named `lh-<seed>-<number>`. Each namespace is created before its first object and deleted after its
//! last.

mod answers;
pub(crate) mod api;
pub(crate) mod companions;
pub(crate) mod config;
mod engine;
mod generate;
mod interval;
mod lifecycle;
mod mend;
pub(crate) mod namespaces;
pub(crate) mod objects;
mod operate;
mod operations;
mod pace;
mod pattern;
mod plan;
pub(crate) mod resource;
mod samples;
mod sections;
mod shared;
pub(crate) mod template;
pub(crate) mod version;
mod worker;
pub(crate) mod writes;

pub use crate::open_loop::Steer;
pub use answers::{Answers, Covers};
pub use api::Api;
pub use config::{Config, End, HIGHEST_POPULATION, HIGHEST_RATE, Mix};
pub use engine::{Canaries, Churn};
pub use generate::{NoTemplate, fill, generate, variants};
pub use interval::Interval;
pub use lifecycle::{Also, By, Changes, Finalizers, Propagation, Tree};
pub use mend::{Cause, alternatives, fields_named};
pub use pace::Pace;
pub use plan::Plan;
pub use plan::Specimen;
pub use resource::{SPELLINGS, Scope, collection_path, is_known, names};
pub use samples::{Expect, Sample};
pub use sections::Sections;
pub use shared::CanaryWrite;
pub use template::{change, drawn_as, example};
pub use writes::{Write, Writes};

/// Why churn cannot be planned, started, probed with a canary, or cleaned up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key of the configuration has a value that cannot work.
    #[error("churn.{key}: {problem}")]
    Config {
        /// The key, such as `rate` or `mix.delete`.
        key: &'static str,
        /// The problem with the key, and advice for the user.
        problem: String,
    },
    /// One of several sections cannot work.
    #[error("section {number}: {source}")]
    Section {
        /// The number of the section, from 1.
        number: usize,
        source: Box<Error>,
    },
    /// The sections cannot work together.
    #[error("churn: {problem}")]
    Sections {
        /// Why the sections cannot work together, with advice for the user.
        problem: String,
    },
    /// A dry run showed that the control plane would refuse a kind of write.
    #[error("rehearse {what}: {problem}")]
    Refused {
        /// The kind of write, such as `a label`.
        what: &'static str,
        problem: String,
    },
    /// The API server's address, certificates or token cannot be used.
    #[error("control plane: {problem}")]
    Api {
        /// The problem, and advice for the user.
        problem: String,
    },
    /// The first objects could not be created.
    #[error("fill the population: {problem}")]
    Fill { problem: String },
    #[error("write the canary: {problem}")]
    Canary { problem: String },
    /// Objects still exist after their deletion: a finalizer holds them, or deletions failed.
    #[error("remove every object: {problem}")]
    Left { problem: String },
    /// The operating system could not start a thread or a runtime.
    #[error("start the churn's threads: {source}")]
    Threads {
        #[from]
        source: std::io::Error,
    },
    /// The worker has ended, because of a panic or because churn was stopped.
    #[error("reach the churn's worker: it has ended")]
    Ended,
}

impl From<crate::wire::EndpointError> for Error {
    fn from(error: crate::wire::EndpointError) -> Self {
        Self::Api { problem: error.to_string() }
    }
}

fn refuse(key: &'static str, problem: impl Into<String>) -> Result<(), Error> {
    Err(Error::Config { key, problem: problem.into() })
}
