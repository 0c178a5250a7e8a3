//! The failures of the injected program. Each failure has an exit code, and a message that names the exact position of
//! the fault.

use std::io;
use std::path::PathBuf;

use crate::digest::Digest;

/// The command line is invalid (`EX_USAGE` of BSD's sysexits).
pub const EXIT_USAGE: u8 = 64;
/// The index, a chunk or the payload is invalid (`EX_DATAERR`).
pub const EXIT_DATA: u8 = 65;
/// The index or a chunk is missing (`EX_NOINPUT`).
pub const EXIT_NO_INPUT: u8 = 66;
/// The system refused an operation, such as binding an address or starting a thread (`EX_OSERR`).
pub const EXIT_SYSTEM: u8 = 71;
/// Reading or writing a file failed (`EX_IOERR`).
pub const EXIT_IO: u8 = 74;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
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
    #[error("truncated: {found} of {expected} bytes")]
    Truncated { expected: u32, found: u64 },
    #[error("too long: more than {expected} bytes")]
    TooLong { expected: u32 },
    /// The file has the bytes of the chunk with this number, and that chunk's file has the bytes of this chunk.
    #[error("swapped with chunk {0:05}")]
    Swapped(u32),
    /// The file has the bytes of the chunk with this number, and that chunk's file is right.
    #[error("doubled: it holds the bytes of chunk {0:05}")]
    Doubled(u32),
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
