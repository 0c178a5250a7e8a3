//! Splits the bytes of a watch into lines: an event ends at its newline, wherever chunks, frames or packets end.

use bytes::{Bytes, BytesMut};

/// Longest line in bytes. Objects are at most 1.5 MiB, so a longer line is not an event.
const LINE_BYTES_MAX: usize = 4 << 20;

/// The received bytes: whole lines that were not taken yet, and the beginning of the next line.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: BytesMut,
    /// No newline is before this offset. This offset prevents that a line in a thousand chunks is searched a thousand
    /// times.
    searched: usize,
}

impl Lines {
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole line, without its newline.
    pub fn take(&mut self) -> Option<Bytes> {
        let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + end + 1);
        self.searched = 0;
        line.truncate(line.len() - 1);
        Some(line.freeze())
    }

    /// Whether the buffer has no bytes of an unfinished line.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether the unfinished line is already too long to be an event.
    pub fn is_overlong(&self) -> bool {
        self.buffer.len() > LINE_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bytes give the same lines, wherever the bytes are split.
    #[test]
    fn a_cut_at_any_offset_changes_nothing() {
        let text = "{\"a\":\"žluťoučký 漢字 🚀\"}\n{\"b\":2}\n\n{\"c\"".as_bytes();
        let whole: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let expected = &whole[..3];
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut lines = Lines::default();
                let mut taken = Vec::new();
                for piece in [&text[..first], &text[first..second], &text[second..]] {
                    lines.push(piece);
                    while let Some(line) = lines.take() {
                        taken.push(line);
                    }
                }
                assert_eq!(taken, expected, "cut at {first} and {second}");
                assert_eq!(&lines.buffer[..], b"{\"c\"");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_noticed() {
        let mut lines = Lines::default();
        lines.push(&vec![b'x'; LINE_BYTES_MAX]);
        assert!(lines.take().is_none() && !lines.is_overlong());
        lines.push(b"x");
        assert!(lines.is_overlong());
    }
}
