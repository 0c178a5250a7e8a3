//! Why the seed gives up: one message that names the exact place, and one exit code.

use std::io;
use std::path::PathBuf;

use crate::digest::Digest;

/// The command line cannot be used (`EX_USAGE` of BSD's sysexits).
pub const EXIT_USAGE: u8 = 64;
/// Index, chunk or payload is not what it should be (`EX_DATAERR`).
pub const EXIT_DATA: u8 = 65;
/// Index or chunk is not there (`EX_NOINPUT`).
pub const EXIT_NO_INPUT: u8 = 66;
/// The system refused: no address to listen on, no thread (`EX_OSERR`).
pub const EXIT_SYSTEM: u8 = 71;
/// Reading or writing failed (`EX_IOERR`).
pub const EXIT_IO: u8 = 74;

/// Why the seed gives up.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
    /// The index is not the one that was announced.
    #[error("the index has the digest {found}, and {expected} was announced")]
    IndexDigest {
        /// As announced.
        expected: Digest,
        /// Of the file.
        found: Digest,
    },
    /// The index breaks its format.
    #[error("index: line {line}: {what}")]
    Index {
        /// Counted from 1.
        line: usize,
        what: &'static str,
    },
    /// A chunk that is not usable.
    #[error("chunk {number:05} ({place} of {count}): {what}")]
    Chunk {
        number: u32,
        /// Where it stands in the payload, from 1.
        place: usize,
        /// How many there are.
        count: usize,
        what: Wrong,
    },
    /// All chunks are right and what they make up is not.
    #[error("the payload has the digest {found}, and the index says {expected}")]
    Whole {
        /// As the index says.
        expected: Digest,
        /// Of the chunks in order.
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
    /// The system refused something else.
    #[error("{what}: {source}")]
    System {
        /// The step that failed.
        what: String,
        source: io::Error,
    },
}

/// Defects of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// There is no such file.
    #[error("missing")]
    Missing,
    /// Fewer bytes than the index says.
    #[error("truncated: {found} of {expected} bytes")]
    Truncated {
        /// As the index says.
        expected: u32,
        /// In the file.
        found: u64,
    },
    /// More bytes than the index says.
    #[error("too long: more than {expected} bytes")]
    TooLong {
        /// As the index says.
        expected: u32,
    },
    /// The file holds another chunk, and that one holds this.
    #[error("swapped with chunk {0:05}")]
    Swapped(u32),
    /// The file holds another chunk, which is also at its own place.
    #[error("doubled: it holds the bytes of chunk {0:05}")]
    Doubled(u32),
    /// Other bytes than the index says.
    #[error("corrupt: its digest is {found}, and the index says {expected}")]
    Corrupt {
        /// As the index says.
        expected: Digest,
        /// Of the file.
        found: Digest,
    },
}

impl Failure {
    /// A file that cannot be read or written.
    pub fn file(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::File { path: path.into(), source }
    }

    /// The exit code that says it.
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
