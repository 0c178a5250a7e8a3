//! The head of requests in HPACK (RFC 7541), made once, because only the length of the body differs between calls.
//! Pure: no I/O.
//!
//! If the server announces a large enough table, the next request adds the constant fields to the table. In later
//! requests each of these constant fields is one byte, as with other clients.

use std::io::Write as _;

/// The beginning of the field `content-length` without indexing: index 28 of its name, in a prefix of four bits.
const CONTENT_LENGTH: [u8; 2] = [0x0f, 13];
pub(crate) const METHOD_POST: u8 = 0x83;
pub(crate) const SCHEME_HTTPS: u8 = 0x87;
/// The first index of the dynamic table.
const DYNAMIC: usize = 62;
/// The size that counts for a table entry besides its texts (RFC 7541, section 4.1).
const ENTRY_BYTES: usize = 32;

/// The names of the head's fields, with their indices in the static table (RFC 7541, appendix A).
const NAMES: [(&str, u8); FIELDS] = [
    (":authority", 1),
    (":path", 4),
    ("accept-encoding", 16),
    ("accept", 19),
    ("content-type", 31),
    ("user-agent", 58),
];
const FIELDS: usize = 6;

/// The head of all requests to one server and path.
#[derive(Debug)]
pub(crate) struct Head {
    literal: Vec<u8>,
    teaching: Vec<u8>,
    taught: Vec<u8>,
    table_bytes: usize,
}

/// How the head of the next request on a connection is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Every field is written in full, because the server's table is too small.
    Literal,
    /// Every field is written in full and added to the server's table.
    Teaching,
    /// Every field is written as its index in the server's table.
    Taught,
}

impl Head {
    /// The head of a POST over https with these fields. Fields whose names are not in [`NAMES`] are left out.
    pub(crate) fn new(fields: [(&str, &str); FIELDS]) -> Self {
        let known = fields.iter().filter_map(|(name, value)| {
            NAMES.iter().find(|(known, _)| known == name).map(|(_, index)| (name.len(), *index, *value))
        });
        let table_bytes = known.clone().map(|(name, _, value)| name + value.len() + ENTRY_BYTES).sum();
        let mut head = Self { literal: Vec::new(), teaching: Vec::new(), taught: Vec::new(), table_bytes };
        number(0x20, 5, 0, &mut head.literal);
        number(0x20, 5, table_bytes, &mut head.teaching);
        for block in [&mut head.literal, &mut head.teaching, &mut head.taught] {
            block.extend_from_slice(&[METHOD_POST, SCHEME_HTTPS]);
        }
        for (at, (_, index, value)) in known.enumerate() {
            for (block, kind, bits) in [(&mut head.literal, 0, 4), (&mut head.teaching, 0x40, 6)] {
                number(kind, bits, usize::from(index), block);
                number(0, 7, value.len(), block);
                block.extend_from_slice(value.as_bytes());
            }
            // The newest entry has the first index.
            number(0x80, 7, DYNAMIC + fields.len() - 1 - at, &mut head.taught);
        }
        head
    }

    /// The encoding of the next head, for a server's table of this size.
    pub(super) fn form_after(&self, form: Form, table_bytes: usize) -> Form {
        match form {
            _ if self.table_bytes > table_bytes => Form::Literal,
            Form::Literal => Form::Teaching,
            known => known,
        }
    }

    /// The header block without the length of the body, which the caller appends.
    pub(super) fn block(&self, form: Form) -> &[u8] {
        match form {
            Form::Literal => &self.literal,
            Form::Teaching => &self.teaching,
            Form::Taught => &self.taught,
        }
    }
}

/// The field `content-length`, made without an allocation.
pub(super) struct Length {
    bytes: [u8; 23],
    length: usize,
}

impl Length {
    pub(super) fn of(body: usize) -> Self {
        let mut bytes = [0; 23];
        let mut rest = &mut bytes[3..];
        // 20 digits hold every 64-bit number.
        let _ = write!(rest, "{body}");
        let digits = 20 - rest.len();
        bytes[..2].copy_from_slice(&CONTENT_LENGTH);
        #[expect(clippy::cast_possible_truncation, reason = "at most 20")]
        let count = digits as u8;
        bytes[2] = count;
        Self { bytes, length: 3 + digits }
    }

    pub(super) fn field(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Writes a number after the high bits of its first byte (RFC 7541, section 5.1).
pub(crate) fn number(high: u8, bits: u8, value: usize, out: &mut Vec<u8>) {
    let mask = (1usize << bits) - 1;
    #[expect(clippy::cast_possible_truncation, reason = "cut to seven bits")]
    let byte = |value: usize| value as u8;
    if value < mask {
        out.push(high | byte(value));
        return;
    }
    out.push(high | byte(mask));
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(0x80 | byte(rest & 0x7f));
        rest >>= 7;
    }
    out.push(byte(rest));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_in_the_rfc() {
        // RFC 7541, appendix C.1.
        for (bits, value, bytes) in [(5, 10, &[10][..]), (5, 1337, &[31, 154, 10]), (8, 42, &[42])] {
            let mut out = Vec::new();
            number(0, bits, value, &mut out);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn lengths_are_decimal() {
        assert_eq!(Length::of(0).field(), b"\x0f\x0d\x010");
        assert_eq!(Length::of(usize::MAX).field(), b"\x0f\x0d\x1418446744073709551615");
    }

    /// A server's table that is too small for the head is never used, and one that becomes too small is no longer used.
    #[test]
    fn only_a_table_that_is_large_enough_is_taught() {
        let head = Head::new([
            (":authority", "a"),
            (":path", "/"),
            ("user-agent", "u"),
            ("accept", "*"),
            ("content-type", "j"),
            ("accept-encoding", "g"),
        ]);
        assert_eq!(head.table_bytes, 6 * 33 + 10 + 5 + 10 + 6 + 12 + 15);
        assert_eq!(head.form_after(Form::Literal, head.table_bytes - 1), Form::Literal);
        assert_eq!(head.form_after(Form::Literal, 4096), Form::Teaching);
        assert_eq!(head.form_after(Form::Taught, 4096), Form::Taught);
        assert_eq!(head.form_after(Form::Taught, 0), Form::Literal);
        assert_eq!(head.block(Form::Taught), [0x83, 0x87, 0xc3, 0xc2, 0xc1, 0xc0, 0xbf, 0xbe]);
        assert_eq!(head.block(Form::Literal)[..7], [0x20, 0x83, 0x87, 0x01, 1, b'a', 0x04]);
    }
}
