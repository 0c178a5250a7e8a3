//! Removes the chunked framing from a body (RFC 9112, section 7.1). Pure, without I/O; stores no data, only the
//! position in the framing.

/// Maximum length of the line with a chunk's size and extensions, and of all trailers, in bytes. This number also
/// limits the bytes of all framing minus [`FRAMING_FREE_BYTES`] for each chunk and twice the bytes of data. Go's client
/// has the same limits.
const LINE_MAX_BYTES: u32 = 16 << 10;
/// Bytes of framing for each chunk that do not count towards the limit.
const FRAMING_FREE_BYTES: u64 = 16;

/// The position of the next byte in the framing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunked {
    at: At,
    left: u64,
    /// Number of bytes of framing beyond those that the data allows.
    framing: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The next byte belongs to the size of a chunk; true after its first digit.
    Size(bool),
    Extension,
    Data,
    DataEnd,
    /// The next byte begins a trailer line; an empty line ends the body.
    Trailer,
    TrailerLine,
    Done,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Self { at: At::Size(false), left: 0, framing: 0 }
    }

    pub(super) fn done(&self) -> bool {
        self.at == At::Done
    }

    /// Takes bytes from the front of `input` and returns the data in them, which may be empty. The caller repeats this
    /// call until the input is empty or the body has ended.
    pub(super) fn take<'a>(&mut self, input: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
        if self.at == At::Data {
            let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len());
            let (data, rest) = input.split_at(length);
            *input = rest;
            self.left -= length as u64;
            if self.left == 0 {
                self.at = At::DataEnd;
            }
            return Ok(data);
        }
        while let [byte, rest @ ..] = *input {
            if matches!(self.at, At::Data | At::Done) {
                break;
            }
            *input = rest;
            self.framing += 1;
            if self.framing > LINE_MAX_BYTES {
                return Err("the framing of a chunk does not end");
            }
            self.at = self.next(*byte)?;
        }
        Ok(&[])
    }

    fn next(&mut self, byte: u8) -> Result<At, &'static str> {
        Ok(match (self.at, byte) {
            (At::Size(_), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                let too_large = "the size of a chunk has too many digits";
                self.left = self.left.checked_mul(16).ok_or(too_large)? + u64::from(digit);
                At::Size(true)
            }
            (At::Size(true) | At::Extension, b'\n') if self.left == 0 => At::Trailer,
            (At::Size(true) | At::Extension, b'\n') => {
                let justified = self.left.saturating_mul(2).saturating_add(FRAMING_FREE_BYTES);
                self.framing = self.framing.saturating_sub(u32::try_from(justified).unwrap_or(u32::MAX));
                At::Data
            }
            // The line's end is the line feed; a carriage return before it is skipped like an extension.
            (At::Size(true), b';' | b' ' | b'\t' | b'\r') | (At::Extension, _) => At::Extension,
            (At::DataEnd | At::Trailer, b'\r') => self.at,
            (At::DataEnd, b'\n') => At::Size(false),
            (At::Trailer, b'\n') => At::Done,
            (At::TrailerLine, b'\n') => At::Trailer,
            (At::Trailer | At::TrailerLine, _) => At::TrailerLine,
            _ => return Err("the size of a chunk is no hexadecimal number"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, usize), &'static str> {
        let (mut chunked, mut body, mut rest) = (Chunked::new(), Vec::new(), 0);
        for piece in pieces {
            let mut input = *piece;
            while !input.is_empty() && !chunked.done() {
                body.extend_from_slice(chunked.take(&mut input)?);
            }
            rest += input.len();
        }
        Ok((body, chunked.done(), rest))
    }

    /// However the bytes of a body are cut, the result is the same.
    #[test]
    fn cuts_do_not_matter() {
        let wire = b"5;name=value\r\nhello\r\nA\r\n, world!!!\r\n0\r\nTrailer: x\r\n\r\nrest";
        let whole = (b"hello, world!!!".to_vec(), true, 4);
        assert_eq!(decode(&[wire]).unwrap(), whole);
        for cut in 1..wire.len() {
            assert_eq!(decode(&[&wire[..cut], &wire[cut..]]).unwrap(), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = wire.chunks(1).collect();
        assert_eq!(decode(&bytes).unwrap(), whole);
    }

    #[test]
    fn nonsense_is_refused() {
        for wire in [&b"nonsense\r\n"[..], b"\r\n", b"5\r\nhelloX", b"fffffffffffffffff\r\n"] {
            assert!(decode(&[wire]).is_err(), "{}", String::from_utf8_lossy(wire));
        }
        let endless = [b"0\r\n".as_slice(), &b"a".repeat(LINE_MAX_BYTES as usize)].concat();
        assert!(decode(&[&endless]).is_err());
        let padded = [b"1;".as_slice(), &b"x".repeat(100), b"\r\na\r\n"].concat();
        assert!(decode(&[&padded.repeat(100)]).is_ok());
        assert_eq!(
            decode(&[&padded.repeat(1_000)]).unwrap_err(),
            "the framing of a chunk does not end",
            "all together"
        );
        assert!(decode(&[&b"1\r\na\r\n".repeat(100_000)]).is_ok(), "the framing that every chunk needs");
        assert_eq!(decode(&[b"5\r\nhel"]).unwrap(), (b"hel".to_vec(), false, 0), "an early end is not the end");
    }
}
