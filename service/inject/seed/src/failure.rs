//! The failures of the seed. Each has an exit code, and a message that names the exact position of the fault.

use std::io;
use std::path::PathBuf;

use crate::digest::Digest;

/// The command line is invalid (`EX_USAGE` of BSD's sysexits).
pub const EXIT_USAGE: u8 = 64;
/// Index, chunk or payload is invalid (`EX_DATAERR`).
pub const EXIT_DATA: u8 = 65;
/// Index or chunk is missing (`EX_NOINPUT`).
pub const EXIT_NO_INPUT: u8 = 66;
/// The system refused an operation, such as binding an address or starting a thread (`EX_OSERR`).
pub const EXIT_SYSTEM: u8 = 71;
/// Reading or writing failed (`EX_IOERR`).
pub const EXIT_IO: u8 = 74;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
    /// The index has another digest than the command line states.
    #[error("the index has the digest {found}, and {expected} was announced")]
    IndexDigest { expected: Digest, found: Digest },
    #[error("index: line {line}: {what}")]
    Index { line: usize, what: &'static str },
    #[error("chunk {number:05} ({place} of {count}): {what}")]
    Chunk {
        number: u32,
        /// The chunk's position in the payload, from 1.
        place: usize,
        /// The number of chunks in the payload.
        count: usize,
        what: Wrong,
    },
    /// All chunks are valid, but the digest of the whole payload is wrong.
    #[error("the payload has the digest {found}, and the index says {expected}")]
    Whole { expected: Digest, found: Digest },
    #[error("payload: {0}")]
    Payload(String),
    #[error("catalog: line {line}: {what}")]
    Catalog { line: usize, what: &'static str },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("missing")]
    Missing,
    /// The chunk has fewer bytes than the index states.
    #[error("truncated: {found} of {expected} bytes")]
    Truncated { expected: u32, found: u64 },
    /// The chunk has more bytes than the index states.
    #[error("too long: more than {expected} bytes")]
    TooLong { expected: u32 },
    /// The file has the bytes of another chunk, and the other chunk's file has the bytes of this chunk.
    #[error("swapped with chunk {0:05}")]
    Swapped(u32),
    /// The file has the bytes of another chunk, and the other chunk's file is right.
    #[error("doubled: it holds the bytes of chunk {0:05}")]
    Doubled(u32),
    /// The bytes do not match the index.
    #[error("corrupt: its digest is {found}, and the index says {expected}")]
    Corrupt { expected: Digest, found: Digest },
}

impl Failure {
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
