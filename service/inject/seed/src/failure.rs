//! The failures of the seed: one message that names the exact place, and one exit code.

use std::io;
use std::path::PathBuf;

use crate::digest::Digest;

/// The command line cannot be used (`EX_USAGE` of BSD's sysexits).
pub const EXIT_USAGE: u8 = 64;
/// Index, chunk or payload is not valid (`EX_DATAERR`).
pub const EXIT_DATA: u8 = 65;
/// Index or chunk is missing (`EX_NOINPUT`).
pub const EXIT_NO_INPUT: u8 = 66;
/// The system refused: no address to listen on, no thread (`EX_OSERR`).
pub const EXIT_SYSTEM: u8 = 71;
/// Reading or writing failed (`EX_IOERR`).
pub const EXIT_IO: u8 = 74;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
    /// The index does not have the announced digest.
    #[error("the index has the digest {found}, and {expected} was announced")]
    IndexDigest {
        expected: Digest,
        /// The digest of the file.
        found: Digest,
    },
    /// The index breaks its format.
    #[error("index: line {line}: {what}")]
    Index {
        /// Counted from 1.
        line: usize,
        what: &'static str,
    },
    /// A chunk cannot be used.
    #[error("chunk {number:05} ({place} of {count}): {what}")]
    Chunk {
        number: u32,
        /// Its position in the payload, from 1.
        place: usize,
        /// The number of chunks.
        count: usize,
        what: Wrong,
    },
    /// All chunks are valid, and their whole is not.
    #[error("the payload has the digest {found}, and the index says {expected}")]
    Whole {
        /// The digest in the index.
        expected: Digest,
        /// The digest of the chunks in their order.
        found: Digest,
    },
    /// The payload cannot be unpacked.
    #[error("payload: {0}")]
    Payload(String),
    /// The catalog breaks its format.
    #[error("catalog: line {line}: {what}")]
    Catalog {
        /// Counted from 1.
        line: usize,
        what: &'static str,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// The system refused another operation.
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
}

/// Faults of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("missing")]
    Missing,
    /// Fewer bytes than the index states.
    #[error("truncated: {found} of {expected} bytes")]
    Truncated {
        /// The size in the index.
        expected: u32,
        /// The size of the file.
        found: u64,
    },
    /// More bytes than the index states.
    #[error("too long: more than {expected} bytes")]
    TooLong {
        /// The size in the index.
        expected: u32,
    },
    /// The file has the bytes of another chunk, and that chunk's file has the bytes of this one.
    #[error("swapped with chunk {0:05}")]
    Swapped(u32),
    /// The file has the bytes of another chunk, which is also at its own place.
    #[error("doubled: it holds the bytes of chunk {0:05}")]
    Doubled(u32),
    /// The bytes do not match the index.
    #[error("corrupt: its digest is {found}, and the index says {expected}")]
    Corrupt {
        /// The digest in the index.
        expected: Digest,
        /// The digest of the file.
        found: Digest,
    },
}

impl Failure {
    /// A file that cannot be read or written.
    pub fn file(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::File { path: path.into(), source }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => EXIT_USAGE,
            Self::Chunk { what: Wrong::Missing, .. } => EXIT_NO_INPUT,
            Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound => EXIT_NO_INPUT,
            Self::IndexDigest { .. }
            | Self::Index { .. }
            | Self::Chunk { .. }
            | Self::Whole { .. }
            | Self::Payload(_)
            | Self::Catalog { .. } => EXIT_DATA,
            Self::File { .. } => EXIT_IO,
            Self::System { .. } => EXIT_SYSTEM,
        }
    }
}
