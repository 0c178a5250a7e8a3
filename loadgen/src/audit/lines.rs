//! Splits the bytes of a watch into lines. Pure, without I/O; memory is bounded by the longest line.

/// Maximum length of a line in bytes. An object has at most 1.5 MiB in etcd's encoding; as JSON with managed fields it
/// is larger, but never as large as this limit.
pub(super) const LINE_BYTES_MAX: usize = 8 << 20;

/// The error for a line that is longer than [`LINE_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {} MiB", LINE_BYTES_MAX >> 20)]
pub(super) struct TooLong;

/// Received bytes that were not returned as lines yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// The start of the next line.
    begin: usize,
    /// The position up to which no line break was found.
    scanned: usize,
}

impl Lines {
    /// Adds the next bytes of the stream, which may be cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.bytes.drain(..self.begin);
        self.scanned -= self.begin;
        self.begin = 0;
        self.bytes.extend_from_slice(bytes);
        // A socket's delivery bounds the complete lines in it; only an unended one can grow.
        if self.bytes.len() > LINE_BYTES_MAX && !self.bytes[self.scanned..].contains(&b'\n') {
            return Err(TooLong);
        }
        Ok(())
    }

    /// The next complete line without its line break; an incomplete line stays in memory.
    pub(super) fn next_line(&mut self) -> Option<&[u8]> {
        let Some(length) = self.bytes[self.scanned..].iter().position(|&byte| byte == b'\n') else {
            self.scanned = self.bytes.len();
            return None;
        };
        let (begin, end) = (self.begin, self.scanned + length);
        self.begin = end + 1;
        self.scanned = self.begin;
        Some(&self.bytes[begin..end])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the bytes are cut, the lines are the same, and an incomplete line is never returned.
        #[test]
        fn any_cut_gives_the_same_lines(
            lines in proptest::collection::vec("[a-zä]{0,40}", 0..20),
            rest in "[a-z]{0,5}",
            cuts in proptest::collection::vec(1_usize..30, 1..40),
        ) {
            let mut text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            text.push_str(&rest);
            let mut bytes = text.as_bytes();
            let (mut reader, mut seen) = (Lines::default(), Vec::new());
            for cut in cuts.iter().cycle() {
                let (now, later) = bytes.split_at((*cut).min(bytes.len()));
                reader.push(now).unwrap();
                while let Some(line) = reader.next_line() {
                    seen.push(String::from_utf8(line.to_vec()).unwrap());
                }
                bytes = later;
                if bytes.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(seen, lines);
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut reader = Lines::default();
        reader.push(&vec![b'x'; LINE_BYTES_MAX]).unwrap();
        assert_eq!(reader.next_line(), None);
        assert_eq!(reader.push(b"x"), Err(TooLong));
    }
}
