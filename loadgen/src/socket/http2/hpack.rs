//! Decodes the header fields of answers from HPACK (RFC 7541). Pure: no I/O.
//!
//! Only the fields of an answer that matter are decoded: status, type, length and compression. Of other fields only the
//! size is kept, because the decoder's dynamic table must stay equal to the server's. The dynamic table has HTTP/2's
//! default size of 4 KiB, as in Go's client.

mod huffman;
mod table;

use super::frame::{Code, Fault};
use crate::socket::Coding;
use table::{Entry, Table};

/// Maximum number of bytes of a decoded header text. Longer texts are not needed: those that Kubernetes sends have
/// about a dozen bytes.
const TEXT_MAX_BYTES: usize = 1 << 10;

/// The properties of an answer that its header fields state.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub status: Option<u16>,
    pub length: Option<u64>,
    pub coding: Coding,
    /// The `Content-Type`; empty if the answer has none.
    pub content_type: Vec<u8>,
}

impl Head {
    pub(super) fn clear(&mut self) {
        (self.status, self.length, self.coding) = (None, None, Coding::Identity);
        self.content_type.clear();
    }
}

/// The name of a header field, if the decoder needs its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Status,
    ContentType,
    ContentLength,
    ContentEncoding,
    Other,
}

impl Name {
    fn of(text: &[u8]) -> Self {
        match text {
            b":status" => Self::Status,
            b"content-type" => Self::ContentType,
            b"content-length" => Self::ContentLength,
            b"content-encoding" => Self::ContentEncoding,
            _ => Self::Other,
        }
    }
}

/// Decodes one header block after another; each block changes the table for later ones.
#[derive(Debug)]
pub(super) struct Decoder {
    table: Table,
    name: Vec<u8>,
    value: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Text<'a> {
    huffman: bool,
    bytes: &'a [u8],
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { table: Table::new(), name: Vec::new(), value: Vec::new() }
    }

    /// Decodes a whole header block, and writes its values into `head`.
    pub(super) fn read(&mut self, mut block: &[u8], head: &mut Head) -> Result<(), Fault> {
        let mut begun = false;
        while let Some(&first) = block.first() {
            if first & 0xe0 == 0x20 {
                // RFC 7541, section 4.2: only where a block begins.
                if begun {
                    return Err(broken("the table changes its size in the middle of a block"));
                }
                self.table.resize(number(5, &mut block)?)?;
                continue;
            }
            begun = true;
            if first & 0x80 != 0 {
                let index = number(7, &mut block)?;
                if let Some(content_type) = self.table.field(index, head)? {
                    head.content_type.clear();
                    head.content_type.extend_from_slice(content_type);
                }
                continue;
            }
            let keep = first & 0x40 != 0;
            let index = number(if keep { 6 } else { 4 }, &mut block)?;
            let (name, name_bytes) = if index > 0 {
                self.table.name(index)?
            } else {
                text(&mut block)?.read(&mut self.name)?;
                (Name::of(&self.name), self.name.len())
            };
            let value = text(&mut block)?;
            let keep = keep && self.table.bytes_max() > 0;
            // Unneeded fields are not decoded.
            if name == Name::Other && !keep {
                continue;
            }
            value.read(&mut self.value)?;
            let entry = Entry::new(name, name_bytes, &self.value)?;
            if let Some(content_type) = entry.tell(head)? {
                head.content_type.clear();
                head.content_type.extend_from_slice(content_type);
            }
            if keep {
                self.table.insert(entry);
            }
        }
        Ok(())
    }
}

impl Text<'_> {
    fn read(self, out: &mut Vec<u8>) -> Result<(), Fault> {
        out.clear();
        if self.huffman {
            return huffman::decode(self.bytes, out);
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

/// Decodes a number with `bits` bits in its first byte (RFC 7541, section 5.1).
fn number(bits: u8, block: &mut &[u8]) -> Result<usize, Fault> {
    let cut_off = broken("a block breaks off in a number");
    let (&first, rest) = block.split_first().ok_or(cut_off)?;
    *block = rest;
    let mask = (1usize << bits) - 1;
    let mut value = usize::from(first) & mask;
    if value < mask {
        return Ok(value);
    }
    // Four further bytes hold every length that a block of the largest size can have.
    for shift in [0, 7, 14, 21] {
        let (&byte, rest) = block.split_first().ok_or(cut_off)?;
        *block = rest;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(broken("a number is larger than any that makes sense"))
}

fn text<'a>(block: &mut &'a [u8]) -> Result<Text<'a>, Fault> {
    let huffman = block.first().is_some_and(|first| first & 0x80 != 0);
    let length = number(7, block)?;
    let (bytes, rest) = block.split_at_checked(length).ok_or(broken("a block breaks off in a text"))?;
    *block = rest;
    Ok(Text { huffman, bytes })
}

fn broken(text: &'static str) -> Fault {
    Fault { code: Code::COMPRESSION_ERROR, text }
}

#[cfg(test)]
mod tests;
