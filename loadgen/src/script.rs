//! A script: exactly the writes that a scenario lists, at the listed times or after an event.
//!
//! [`crate::churn`] tests whether a subject survives ordinary operation. A script makes the one sequence of versions
//! that a documented bug needs. Writes are made one after another at their times, so the commits have the scenario's
//! order. If the control plane refuses a write, the script ends with an error that names the step, because an
//! incomplete sequence would not prove the bug. A script does not cause faults; [`Script::hit`] reports a fault's hit
//! to it.

mod config;
mod engine;
mod names;
mod objects;
mod plan;

pub use config::{Collection, Config, OBJECTS_MAX, Step, Verb, When};
pub use engine::{Counts, Script};
pub use names::Names;
pub use plan::Plan;

/// Why a script cannot be planned, started, or continued.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key of the configuration has a value that cannot work.
    #[error("script.{key}: {problem}")]
    Config {
        /// The key, such as `resource` or `steps[2].at`.
        key: String,
        /// The problem with the key, and advice for the user.
        problem: String,
    },
    /// The API server's address, certificates or token cannot be used.
    #[error("{problem}")]
    Api {
        /// The problem, and advice for the user.
        problem: String,
    },
    /// The objects that must exist before the subject starts could not be created.
    #[error("make the script's objects: {problem}")]
    Fill { problem: String },
    /// The control plane refused a step, and later steps were not made.
    #[error("step {step} of the script (`{what}`): {problem}")]
    Refused {
        /// The number of the step in the file, from 1.
        step: usize,
        /// The verb and the object of the step.
        what: String,
        problem: String,
    },
}

impl From<crate::churn::Error> for Error {
    fn from(error: crate::churn::Error) -> Self {
        Self::Api { problem: error.to_string() }
    }
}
