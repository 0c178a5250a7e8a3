//! Admission load: reviews, their planned times, the right answers, and the received answers.
//!
//! [`Plan::build`] makes a bounded set of `AdmissionReview`s, and an exact stream of (time, review) of any length.
//! Generator threads send each review at its planned time, as kube-apiserver would. These threads check each answer as
//! kube-apiserver would, compare it with the right answer, and record the result.

mod answer;
mod answers;
mod asking;
pub mod attack;
pub mod attack_plan;
#[doc(hidden)]
pub mod bench;
mod config;
mod corpus;
mod expected;
mod generator;
mod image;
mod interval;
mod load;
mod mix;
mod objects;
mod oracle;
mod own;
mod plan;
mod pods;
mod review;
mod settle;
mod shared;
pub mod through;
mod truth;

pub use answers::{Answer, Answers, Tells};
pub use asking::{Asking, Reviewed};
pub use config::{
    Client, Config, DEFAULT_MAX_IN_FLIGHT, DEFAULT_THREADS, DEFAULT_TIMEOUT, HIGHEST_RATE, HIGHEST_WORKERS, Through,
    Workers,
};
pub use image::{Image, Refusal};
pub use interval::{Counts, Interval, Outcome, Phases, SLOWEST, Slow};
pub use load::{ClientCertificate, Load, Target};
pub use mix::Mix;
pub use own::{Hook, Own};
pub use plan::Plan;
pub use review::Operation;
pub use settle::FirstAnswer;
pub use truth::Truth;

pub use crate::{Arrivals, Shape};

/// Why admission load cannot be planned or started. Each error message names the key and says what to write instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key of the configuration has a value that cannot work.
    #[error("admission.{key}: {problem}")]
    Config {
        /// The key, such as `rate` or `mix`.
        key: &'static str,
        /// The problem with the key, and advice for the user.
        problem: String,
    },
    /// The images of the load cannot be used.
    #[error("images: {problem}")]
    Images {
        /// The problem with the images, and advice for the user.
        problem: String,
    },
    /// The webhook's address, name or certificates cannot be used.
    #[error("target: {problem}")]
    Target {
        /// The problem with the address, name or certificates, and advice for the user.
        problem: String,
    },
    /// The file of a replay cannot be used.
    #[error(transparent)]
    Recording(#[from] crate::RecordingError),
    /// The harness could not follow the objects that the API server stores.
    #[error("what the API server stores: {problem}")]
    Stored {
        /// The missing objects, or the API server's message.
        problem: String,
    },
    /// The operating system could not start a thread or a runtime.
    #[error("start the load's threads: {source}")]
    Threads {
        #[from]
        source: std::io::Error,
    },
}

impl From<crate::wire::EndpointError> for Error {
    fn from(error: crate::wire::EndpointError) -> Self {
        Self::Target { problem: error.to_string() }
    }
}
