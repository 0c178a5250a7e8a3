//! Decodes the Huffman code of HPACK (RFC 7541, appendix B). Pure: no I/O.
//!
//! The code is canonical: codes of equal length are consecutive in the order of their symbols, and follow the shorter
//! codes. Therefore the lengths alone determine the code.

use super::{Fault, broken};

const SYMBOLS: usize = 257;
/// The symbol for the end of a string, which must not be inside a string (RFC 7541, section 5.2).
const END: u16 = 256;
const LONGEST: usize = 30;

/// The number of bits in each symbol's code.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// All codes of one length in bits.
#[derive(Clone, Copy)]
struct Row {
    /// The first code of this length.
    first: u32,
    count: u32,
    /// The index of the first code's symbol in [`Code::symbols`].
    at: u32,
}

struct Code {
    /// The codes by their length in bits.
    rows: [Row; LONGEST + 1],
    /// The symbols in the order of their codes, by length and then by value.
    symbols: [u16; SYMBOLS],
}

static CODE: Code = build();

#[expect(clippy::cast_possible_truncation, reason = "symbols are below 257")]
const fn build() -> Code {
    let mut code = Code { rows: [Row { first: 0, count: 0, at: 0 }; LONGEST + 1], symbols: [0; SYMBOLS] };
    let (mut length, mut next, mut at) = (1, 0u32, 0);
    while length <= LONGEST {
        next <<= 1;
        let row = at;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                code.symbols[at] = symbol as u16;
                at += 1;
            }
            symbol += 1;
        }
        let count = (at - row) as u32;
        code.rows[length] = Row { first: next, count, at: row as u32 };
        next += count;
        length += 1;
    }
    code
}

pub(super) fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let (mut code, mut length) = (0u32, 0);
    for byte in bytes {
        for bit in (0..8).rev() {
            code = code << 1 | u32::from(byte >> bit & 1);
            length += 1;
            let row = CODE.rows[length];
            let Some(offset) = code.checked_sub(row.first).filter(|offset| *offset < row.count) else {
                // The code is complete: thirty bits are always a symbol.
                continue;
            };
            let symbol = CODE.symbols[(row.at + offset) as usize];
            if symbol == END {
                return Err(broken("a text has an end in its middle"));
            }
            #[expect(clippy::cast_possible_truncation, reason = "below 256, as it is not the end")]
            out.push(symbol as u8);
            (code, length) = (0, 0);
        }
    }
    // The padding of the last byte is the beginning of the end-of-string code: up to seven ones.
    if length > 7 || code != (1 << length) - 1 {
        return Err(broken("a text does not end as it should"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An encoder for tests, made from the same lengths.
    fn encode(text: &[u8]) -> Vec<u8> {
        let (mut bits, mut out) = (Vec::new(), Vec::new());
        for symbol in text {
            let length = usize::from(LENGTHS[usize::from(*symbol)]);
            let row = CODE.rows[length];
            let same = CODE.symbols[row.at as usize..][..row.count as usize].iter();
            let offset = same.take_while(|other| **other != u16::from(*symbol)).count();
            let code = row.first + u32::try_from(offset).unwrap();
            bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
        }
        bits.resize(bits.len().next_multiple_of(8), true);
        for byte in bits.chunks(8) {
            out.push(byte.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
        }
        out
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        decode(bytes, &mut out).map(|()| out)
    }

    /// The examples of RFC 7541, appendix C.4 and C.6, decode to the given texts.
    #[test]
    fn the_examples_of_the_rfc() {
        for (text, bytes) in [
            ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
            ("no-cache", "a8eb10649cbf"),
            ("custom-value", "25a849e95bb8e8b4bf"),
            ("302", "6402"),
            ("private", "aec3771a4b"),
            ("Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"),
            ("https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"),
            ("gzip", "9bd9ab"),
        ] {
            let bytes = hex::decode(bytes).unwrap();
            assert_eq!(decoded(&bytes).unwrap(), text.as_bytes());
            assert_eq!(encode(text.as_bytes()), bytes);
        }
    }

    /// No code is unused, so every sequence of bits decodes to symbols.
    #[test]
    fn the_code_is_complete() {
        let taken: u64 = LENGTHS.iter().map(|length| 1 << (LONGEST - usize::from(*length))).sum();
        assert_eq!(taken, 1 << LONGEST);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        // The end-of-string code itself; eight ones of padding; padding that is not all ones.
        for bytes in ["ffffffff", "f1e3c2e5f23a6ba0ab90f4ffff", "a8eb10649cbe"] {
            assert!(decoded(&hex::decode(bytes).unwrap()).is_err(), "{bytes}");
        }
    }

    proptest! {
        /// Every text is the same after it was encoded and decoded.
        #[test]
        fn there_and_back(text: Vec<u8>) {
            prop_assert_eq!(decoded(&encode(&text)).unwrap(), text);
        }

        /// For any input, the decoded text has at most eight symbols for five bytes.
        #[test]
        fn nothing_grows_beyond_its_bound(bytes: Vec<u8>) {
            if let Ok(text) = decoded(&bytes) {
                prop_assert!(text.len() <= bytes.len() * 8 / 5);
            }
        }
    }
}
