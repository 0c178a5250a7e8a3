//! Code that all control planes of real programs share: the folder with keys, child processes, and waiting for answers.
//!
//! [`crate::local`] and [`crate::node`] choose the programs and their arguments.

use std::path::PathBuf;

use crate::{MissingProgram, state};

pub(crate) mod files;
pub(crate) mod process;
pub(crate) mod ready;

pub use files::User;
pub use ready::Unready;

/// Number of lines of a log that an error shows.
const LOG_LINES: usize = 12;

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks a program.
    #[error("nothing was started")]
    Missing(#[from] MissingProgram),
    /// The control plane could not be registered in the state directory.
    #[error(transparent)]
    State(#[from] state::Error),
    /// A file or folder could not be written or read.
    #[error("failed to write {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A user name or group that the token file, which is CSV, cannot contain.
    #[error("failed to make the user `{name}`: a name or group holds a comma, a quote or a line break")]
    UserName { name: String },
    /// A key or certificate could not be made.
    #[error("failed to make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// TLS to the new API server could not be set up.
    #[error("failed to set up TLS")]
    Tls(#[from] rustls::Error),
    /// No port is free.
    #[error("failed to find a free loopback port")]
    Port(#[source] std::io::Error),
    /// A program could not be started.
    #[error("failed to start {program}")]
    Spawn {
        program: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// A program ended before it was ready.
    #[error("{program} ended with {status} before it was ready; the end of {}:\n{tail}", log.display())]
    Ended { program: &'static str, status: String, log: PathBuf, tail: String },
    /// A program was not ready in time.
    #[error("{program} was not ready after {waited_s} s ({reason}); the end of {}:\n{tail}", log.display())]
    NotReady {
        program: &'static str,
        /// Seconds that longhaul waited for the program.
        waited_s: u64,
        /// The result of the last readiness request.
        reason: Unready,
        log: PathBuf,
        tail: String,
    },
}
