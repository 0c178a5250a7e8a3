//! Failures of a fetch, with their remedies. Owns the texts and nothing else.

use std::path::PathBuf;

/// Why a fetch failed. No partial file remains.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid version.
    #[error("failed to read the version `{version}`: write for example `1.33.0`")]
    Version { version: String },
    /// There are no official programs for this machine.
    #[error("there are no official programs for {os} on {arch}: build them, or use a machine with Linux")]
    Platform { os: &'static str, arch: &'static str },
    /// A forbidden address.
    #[error("failed to use the address `{url}`: {problem}")]
    Url { url: String, problem: String },
    /// No certificates to trust.
    #[error("failed to find certificates to trust: {problem}")]
    Roots {
        /// The certificates that were found instead.
        problem: String,
    },
    /// The server has no such file.
    #[error("there is no {url}: is the version right?")]
    NotFound { url: String },
    /// The transfer of the file failed.
    #[error("failed to fetch {url}: {problem}")]
    Broken {
        url: String,
        /// The server's message, or how the connection failed.
        problem: String,
    },
    /// The server's file is larger than its limit.
    #[error("failed to fetch {url}: it has more than {most} bytes")]
    TooLarge {
        url: String,
        /// The most bytes.
        most: u64,
    },
    /// The server does not give the digest of the file.
    #[error("failed to check {file}: {url} has no SHA-256 digest of it")]
    NoDigest {
        file: String,
        /// The address at which the digest should be.
        url: String,
    },
    /// The digest of the file is wrong.
    #[error("{url} has the wrong content: its SHA-256 is {found}, expected {expected}; the file was deleted")]
    Digest {
        url: String,
        /// In hex.
        expected: String,
        /// In hex.
        found: String,
    },
    /// The archive does not contain the program.
    #[error("failed to unpack {file}: {problem}")]
    Archive { file: String, problem: String },
    /// The disk is full.
    #[error("failed to write {}: no space is left; a control plane needs about 300 MB", path.display())]
    NoSpace {
        /// The file being written.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("failed to write {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}
