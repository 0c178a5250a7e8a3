//! Errors of downloading a control plane's programs, with advice for the user.

use std::path::PathBuf;

/// Why a fetch failed. After a failed fetch no partial file remains.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The version of Kubernetes is invalid.
    #[error("failed to read the version `{version}`: write for example `1.33.0`")]
    Version { version: String },
    /// No official programs exist for this machine.
    #[error("there are no official programs for {os} on {arch}: build them, or use a machine with Linux")]
    Platform { os: &'static str, arch: &'static str },
    /// The URL of a download or of a redirect is not allowed.
    #[error("failed to use the address `{url}`: {problem}")]
    Url { url: String, problem: String },
    /// No trusted certificates were found.
    #[error("failed to find certificates to trust: {problem}")]
    Roots {
        /// Why the certificates could not be used.
        problem: String,
    },
    /// The server has no file at this URL.
    #[error("there is no {url}: is the version right?")]
    NotFound { url: String },
    /// The transfer of the file failed.
    #[error("failed to fetch {url}: {problem}")]
    Broken {
        url: String,
        /// The server's message, or the reason why the connection failed.
        problem: String,
    },
    /// The file is larger than its limit.
    #[error("failed to fetch {url}: it has more than {most} bytes")]
    TooLarge {
        url: String,
        /// The limit in bytes.
        most: u64,
    },
    /// The server's digest file has no digest of this file.
    #[error("failed to check {file}: {url} has no SHA-256 digest of it")]
    NoDigest {
        file: String,
        /// The URL of the digest file.
        url: String,
    },
    /// The digest of the file is wrong.
    #[error("{url} has the wrong content: its SHA-256 is {found}, expected {expected}; the file was deleted")]
    Digest {
        url: String,
        /// The expected digest in hex.
        expected: String,
        /// The digest of the received file in hex.
        found: String,
    },
    /// The archive does not contain the program.
    #[error("failed to unpack {file}: {problem}")]
    Archive { file: String, problem: String },
    /// The disk is full.
    #[error("failed to write {}: no space is left; a control plane needs about 300 MB", path.display())]
    NoSpace {
        /// The path of the file that was being written.
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
