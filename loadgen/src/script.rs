//! A script: exactly the writes of a scenario, at the scenario's times, or after an event.
//!
//! [`crate::churn`] tests whether a subject survives ordinary operation; a script makes the one sequence of versions
//! that a documented bug needs. Writes are made one after the other, in the order of their times, so that the order in
//! the scenario is the order of the commits. A write that the control plane refuses ends the script with an error that
//! names the step: an incomplete sequence would prove something else. A script knows nothing of faults; [`Script::hit`]
//! reports that one was hit.

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
        /// The fault, and what to write instead.
        problem: String,
    },
    /// The API server's address, certificates or token.
    #[error("{problem}")]
    Api {
        /// The fault, and what to write instead.
        problem: String,
    },
    /// The objects that have to exist before the subject starts could not be made.
    #[error("make the script's objects: {problem}")]
    Fill { problem: String },
    /// The control plane refused a step. The steps after it were not made.
    #[error("step {step} of the script (`{what}`): {problem}")]
    Refused {
        /// The step's number in the file, from 1.
        step: usize,
        /// The step's verb and object.
        what: String,
        problem: String,
    },
}

impl From<crate::churn::Error> for Error {
    fn from(error: crate::churn::Error) -> Self {
        Self::Api { problem: error.to_string() }
    }
}
