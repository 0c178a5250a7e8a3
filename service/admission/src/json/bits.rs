//! The positions of quotes, backslashes and brackets in a block of text, as bits: the lowest bit is the first byte.
//!
//! Brackets outside strings are found as in Langdale and Lemire, "Parsing gigabytes of JSON per second" (VLDB 2019),
//! section 3.1.

use super::piece::{PIECE, Piece};

const BLOCK: usize = 64;

/// The positions of quotes, backslashes and brackets in a block, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Structure {
    quote: u64,
    backslash: u64,
    open: u64,
    close: u64,
}

/// Length of the object or array at the start of `text`; `None` if it has no end.
pub(super) fn container(text: &[u8]) -> Option<usize> {
    let (mut depth, mut escape_carry, mut inside_carry) = (0_usize, 0, 0);
    let (mut at, mut rest) = (0, text);
    while !rest.is_empty() {
        let structure = if let Some((block, more)) = rest.split_first_chunk() {
            rest = more;
            structure(block)
        } else {
            let mut block = [b' '; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            rest = &[];
            structure(&block)
        };
        let mut quote = structure.quote;
        if structure.backslash | escape_carry != 0 {
            quote &= !escaped(structure.backslash, &mut escape_carry);
        }
        let inside = prefix_xor(quote) ^ inside_carry;
        // All ones if the block ends inside a string.
        inside_carry = 0_u64.wrapping_sub(inside >> 63);
        let (open, close) = (structure.open & !inside, structure.close & !inside);
        let closes = close.count_ones() as usize;
        if closes >= depth
            && let Some(bit) = end(depth, open, close)
        {
            return Some(at + bit + 1);
        }
        depth = depth + open.count_ones() as usize - closes;
        at += BLOCK;
    }
    None
}

/// The position of the closing bracket after which no bracket is open; `depth` brackets are open at the start of the
/// block.
fn end(depth: usize, open: u64, mut close: u64) -> Option<usize> {
    let mut closed = 0;
    while close != 0 {
        let bit = close.trailing_zeros();
        closed += 1;
        let opened = (open & ((1 << bit) - 1)).count_ones() as usize;
        if closed >= depth + opened {
            return Some(bit as usize);
        }
        close &= close - 1;
    }
    None
}

/// One bit for each byte after an odd number of backslashes; `carry` is 1 if the next block starts with such a byte.
fn escaped(backslash: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let backslash = backslash & !*carry;
    let follows = backslash << 1 | *carry;
    // Adding the beginnings at odd places carries through each row and comes out behind it.
    let odd_starts = backslash & !EVEN & !follows;
    let (sums, overflow) = odd_starts.overflowing_add(backslash);
    *carry = u64::from(overflow);
    (EVEN ^ (sums << 1)) & follows
}

/// Sets a bit if the number of ones from the lowest bit up to this bit is odd.
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// The position of the first quote, backslash or control character in `text`.
#[inline]
pub(super) fn special(text: &[u8]) -> Option<usize> {
    first(text, is_special)
}

/// Calls `each` with the position of every quote, backslash or control character of `text`.
pub(super) fn specials(text: &[u8], mut each: impl FnMut(usize)) {
    for (index, bytes) in text.chunks(PIECE).enumerate() {
        let mut piece = [b' '; PIECE];
        piece[..bytes.len()].copy_from_slice(bytes);
        let mut found = is_special(Piece::new(piece));
        while found != 0 {
            each(index * PIECE + found.trailing_zeros() as usize);
            found &= found - 1;
        }
    }
}

#[inline]
fn is_special(piece: Piece) -> u32 {
    piece.equal(b'"') | piece.equal(b'\\') | piece.up_to(b' ' - 1)
}

/// The position of the first quote or backslash in `text`.
#[inline]
pub(super) fn quote_or_backslash(text: &[u8]) -> Option<usize> {
    first(text, |piece| piece.equal(b'"') | piece.equal(b'\\'))
}

#[inline]
fn first(text: &[u8], wanted: impl Fn(Piece) -> u32) -> Option<usize> {
    let mut pieces = text.chunks_exact(PIECE);
    let mut at = 0;
    for piece in pieces.by_ref() {
        let found = wanted(Piece::new(piece.try_into().ok()?));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += PIECE;
    }
    let mut last = [b' '; PIECE];
    last[..pieces.remainder().len()].copy_from_slice(pieces.remainder());
    let found = wanted(Piece::new(last));
    (found != 0).then(|| at + found.trailing_zeros() as usize)
}

#[inline]
fn structure(block: &[u8; BLOCK]) -> Structure {
    let mut structure = Structure::default();
    for (index, piece) in block.as_chunks::<PIECE>().0.iter().enumerate() {
        let (piece, shift) = (Piece::new(*piece), index * PIECE);
        // `[` and `{` differ in one bit, and so do `]` and `}`.
        let folded = piece.with(0x20);
        structure.quote |= u64::from(piece.equal(b'"')) << shift;
        structure.backslash |= u64::from(piece.equal(b'\\')) << shift;
        structure.open |= u64::from(folded.equal(b'{')) << shift;
        structure.close |= u64::from(folded.equal(b'}')) << shift;
    }
    structure
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_byte_is_found(bytes in any::<[u8; BLOCK]>(), chosen in prop::sample::select(b"\"\\{}[]\x1f ".to_vec())) {
            let mut bytes = bytes;
            bytes[7] = chosen;
            let slow = |wanted: &dyn Fn(u8) -> bool| {
                bytes.iter().enumerate().fold(0, |bits, (at, byte)| bits | u64::from(wanted(*byte)) << at)
            };
            let expected = Structure {
                quote: slow(&|byte| byte == b'"'),
                backslash: slow(&|byte| byte == b'\\'),
                open: slow(&|byte| matches!(byte, b'{' | b'[')),
                close: slow(&|byte| matches!(byte, b'}' | b']')),
            };
            prop_assert_eq!(structure(&bytes), expected);
            let wanted = expected.quote | expected.backslash;
            let first = |bits: u64| (bits != 0).then(|| bits.trailing_zeros() as usize);
            prop_assert_eq!(quote_or_backslash(&bytes), first(wanted));
            prop_assert_eq!(special(&bytes[..50]), first((wanted | slow(&|byte| byte < b' ')) & ((1 << 50) - 1)));
        }

        /// The end of an object or array is found at the same byte as by a byte-by-byte reader.
        #[test]
        fn it_ends_where_a_reader_says(text in r#"[{\[][\\"{}\[\]a]{0,300}"#) {
            let (mut depth, mut inside, mut escaped, mut expected) = (0_usize, false, false, None);
            for (at, byte) in text.bytes().enumerate() {
                let is_escaped = escaped;
                escaped = byte == b'\\' && !escaped;
                match byte {
                    b'"' if !is_escaped => inside = !inside,
                    b'{' | b'[' if !inside => depth += 1,
                    b'}' | b']' if !inside => {
                        depth -= 1;
                        if depth == 0 {
                            expected = Some(at + 1);
                            break;
                        }
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(container(text.as_bytes()), expected);
        }

        /// Escaped bytes are found as by a byte-by-byte reader, across borders of blocks.
        #[test]
        fn escapes_are_those_of_a_reader(backslashes in any::<[u64; 3]>(), sparse in any::<[u64; 3]>()) {
            let (mut carry, mut pending) = (0, false);
            for backslash in [backslashes[0], backslashes[1] | sparse[1], backslashes[2] & sparse[2]] {
                let mut expected = 0;
                for bit in 0..64 {
                    if pending {
                        expected |= 1 << bit;
                        pending = false;
                    } else {
                        pending = backslash >> bit & 1 == 1;
                    }
                }
                prop_assert_eq!(escaped(backslash, &mut carry), expected);
            }
        }
    }
}
