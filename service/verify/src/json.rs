//! JSON from outside. It is UTF-8 as a whole (RFC 8259, 8.1): what is skipped must not be something that another reader refuses.

use serde::Deserialize;

/// Why bytes are not the JSON that they must be. The text goes into the cause of a rejected piece.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonError {
    #[error("not UTF-8")]
    Encoding(#[from] std::str::Utf8Error),
    #[error(transparent)]
    Shape(#[from] serde_json::Error),
}

/// Reads `bytes` as a whole.
pub(crate) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, JsonError> {
    // serde_json alone would check the texts that somebody reads, and skip over all others.
    Ok(serde_json::from_str(std::str::from_utf8(bytes)?)?)
}
