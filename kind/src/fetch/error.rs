//! Why something could not be fetched, and what to do about it. Owns the texts and nothing else.

use std::path::PathBuf;

/// Why something could not be fetched. Nothing half-done is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A version that is none.
    #[error("failed to read the version `{version}`: write for example `1.33.0`")]
    Version {
        /// As it was written.
        version: String,
    },
    /// There are no official programs for this machine.
    #[error("there are no official programs for {os} on {arch}: build them, or use a machine with Linux")]
    Platform {
        /// The operating system.
        os: &'static str,
        /// The processor.
        arch: &'static str,
    },
    /// An address that may not be used.
    #[error("failed to use the address `{url}`: {problem}")]
    Url {
        /// The address.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No certificates to trust.
    #[error("failed to find certificates to trust: {problem}")]
    Roots {
        /// What was found instead.
        problem: String,
    },
    /// The server has no such file.
    #[error("there is no {url}: is the version right?")]
    NotFound {
        /// The address.
        url: String,
    },
    /// The server did not give the file.
    #[error("failed to fetch {url}: {problem}")]
    Broken {
        /// The address.
        url: String,
        /// What it said, or how the connection failed.
        problem: String,
    },
    /// The server's file is larger than it can rightly be.
    #[error("failed to fetch {url}: it has more than {most} bytes")]
    TooLarge {
        /// The address.
        url: String,
        /// The cap.
        most: u64,
    },
    /// The server does not say which digest the file must have.
    #[error("failed to check {file}: {url} has no SHA-256 digest of it")]
    NoDigest {
        /// The file.
        file: String,
        /// Where the digest should be.
        url: String,
    },
    /// The file is not what it should be.
    #[error("{url} has the wrong content: its SHA-256 is {found}, expected {expected}; the file was deleted")]
    Digest {
        /// The address.
        url: String,
        /// In hex.
        expected: String,
        /// In hex.
        found: String,
    },
    /// The archive does not hold what it should.
    #[error("failed to unpack {file}: {problem}")]
    Archive {
        /// The archive.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The disk is full.
    #[error("failed to write {}: no space is left; a control plane needs about 300 MB", path.display())]
    NoSpace {
        /// What was being written.
        path: PathBuf,
    },
    /// A file or folder.
    #[error("failed to write {}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}
