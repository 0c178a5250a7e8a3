//! What every control plane of real programs is made of: the folder with its keys, child processes, waiting for answers.
//!
//! Owns the parts and what can go wrong with them. Which programs there are, and with which arguments, is said by
//! [`crate::local`] and [`crate::node`].

use std::path::PathBuf;

use crate::state;

pub(crate) mod files;
pub(crate) mod process;
pub(crate) mod ready;

pub use files::User;
pub use ready::Unready;

/// How much of a log an error shows.
const LOG_LINES: usize = 12;

/// A control plane that did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not in the folder.
    #[error("failed to find `{program}` in {}: point KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver", assets.display())]
    NoProgram {
        /// `etcd` or `kube-apiserver`.
        program: &'static str,
        /// Where it was looked for.
        assets: PathBuf,
    },
    /// The control plane could not be noted in the state directory.
    #[error(transparent)]
    State(#[from] state::Error),
    /// A file or folder could not be written or read.
    #[error("failed to write {}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A user name or group that cannot stand in the token file, which is CSV.
    #[error("failed to make the user `{name}`: a name or group holds a comma, a quote or a line break")]
    UserName {
        /// The user.
        name: String,
    },
    /// A key or certificate could not be made.
    #[error("failed to make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// TLS to the new API server could not be set up.
    #[error("failed to set up TLS")]
    Tls(#[from] rustls::Error),
    /// No free port.
    #[error("failed to find a free loopback port")]
    Port(#[source] std::io::Error),
    /// A program could not be started.
    #[error("failed to start {program}")]
    Spawn {
        /// Which one.
        program: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A program ended before it was ready.
    #[error("{program} ended with {status} before it was ready; the end of {}:\n{tail}", log.display())]
    Ended {
        /// Which one.
        program: &'static str,
        /// Its exit status.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// A program was not ready in time.
    #[error("{program} was not ready after {waited_s} s ({reason}); the end of {}:\n{tail}", log.display())]
    NotReady {
        /// Which one.
        program: &'static str,
        /// How long was waited, in seconds.
        waited_s: u64,
        /// What the last question was answered.
        reason: Unready,
        /// Its log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
}
