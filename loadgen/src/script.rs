//! A script: exactly the writes that a scenario says, at the times it says, or after something has happened.
//!
//! Where [`crate::churn`] asks whether a subject survives ordinary life, a script makes the one sequence of versions that a
//! documented bug needs. Writes are made one after the other, in the order of their times, so that what a reader of the
//! scenario sees is the order of the commits. A write that the control plane refuses ends the script with an error that names
//! the step: a sequence with a hole in it would show something else. It knows nothing of faults; whoever does tells it by
//! [`Script::hit`] that one was hit.

mod config;
mod engine;
mod names;
mod objects;
mod plan;

pub use config::{Collection, Config, OBJECTS_MAX, Step, Verb, When};
pub use engine::{Counts, Script};
pub use names::Names;
pub use plan::Plan;

/// Why a script cannot be planned, started, or go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key of the configuration that makes no sense.
    #[error("script.{key}: {problem}")]
    Config {
        /// The key, such as `resource` or `steps[2].at`.
        key: String,
        /// What is wrong and what to write instead.
        problem: String,
    },
    /// The API server's address, certificates or token.
    #[error("{problem}")]
    Api {
        /// What is wrong and what to write instead.
        problem: String,
    },
    /// The objects that have to exist before the subject starts could not be made.
    #[error("make the script's objects: {problem}")]
    Fill {
        /// What the API server said.
        problem: String,
    },
    /// A step that the control plane refused. The steps after it were not made.
    #[error("step {step} of the script (`{what}`): {problem}")]
    Refused {
        /// The step's number in the file, from 1.
        step: usize,
        /// The step's verb and object.
        what: String,
        /// What the API server said.
        problem: String,
    },
}

impl From<crate::churn::Error> for Error {
    fn from(error: crate::churn::Error) -> Self {
        Self::Api { problem: error.to_string() }
    }
}
