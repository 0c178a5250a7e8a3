//! Splits a watch stream into JSON lines; the stream's chunks may end anywhere.
//!
//! The length of a line is limited, so the buffer holds at most one line and one chunk of the stream.

use bytes::{Buf as _, Bytes, BytesMut};

/// Maximum number of bytes of a line: etcd's limit of 1.5 MiB for an object, doubled for escapes, and the JSON around
/// the object.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// A line buffer that grew above this size for one large object is freed afterwards.
const KEEP_BYTES: usize = 256 << 10;

/// The error about a line longer than [`LINE_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {LINE_BYTES_MAX} bytes")]
pub struct TooLong;

/// Splits a byte stream into lines.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: BytesMut,
    /// Number of bytes at the front of the buffer that were searched and have no newline.
    scanned: usize,
}

impl Lines {
    pub fn push(&mut self, chunk: &Bytes) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next complete line that is not blank, without its newline.
    pub fn next_line(&mut self) -> Option<Result<Bytes, TooLong>> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BYTES {
                    self.buffer = BytesMut::new();
                }
                return (self.scanned > LINE_BYTES_MAX).then_some(Err(TooLong));
            };
            let line = self.buffer.split_to(self.scanned + at).freeze();
            self.buffer.advance(1);
            self.scanned = 0;
            if line.len() > LINE_BYTES_MAX {
                return Some(Err(TooLong));
            }
            if !line.trim_ascii().is_empty() {
                return Some(Ok(line));
            }
        }
    }

    /// Whether the stream ends in an incomplete line.
    pub fn is_torn(&self) -> bool {
        !self.buffer.trim_ascii().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The lines do not depend on how the bytes of a stream are divided into chunks, and an incomplete last line is
        /// noticed.
        #[test]
        fn cuts_do_not_matter(lines in prop::collection::vec("[a-zé]{0,12}", 0..20), tail in "[a-z]{0,5}", cuts in prop::collection::vec(1usize..9, 1..200)) {
            let mut text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            text.push_str(&tail);
            let mut decoder = Lines::default();
            let (mut found, mut rest, mut cuts) = (Vec::new(), text.as_bytes(), cuts.into_iter().cycle());
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(rest.len().min(cuts.next().unwrap()));
                decoder.push(&Bytes::copy_from_slice(chunk));
                while let Some(line) = decoder.next_line() {
                    found.push(String::from_utf8(line.unwrap().to_vec()).unwrap());
                }
                rest = after;
            }
            let expected: Vec<_> = lines.into_iter().filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(decoder.is_torn(), !tail.is_empty());
        }
    }

    #[test]
    fn a_line_without_end_is_refused_at_the_cap() {
        let mut decoder = Lines::default();
        for _ in 0..LINE_BYTES_MAX / (1 << 20) {
            decoder.push(&Bytes::from(vec![b'x'; 1 << 20]));
            assert_eq!(decoder.next_line(), None);
        }
        decoder.push(&Bytes::from_static(b"x"));
        assert_eq!(decoder.next_line(), Some(Err(TooLong)));
    }
}
