//! Compares sixteen bytes at once with a value; the result has one bit per byte. The bit is 1 if the byte equals the
//! value, or (`up_to`) is at most the value. The lowest bit of the result belongs to the first byte.
//!
//! The code uses SSE2, which every x86-64 processor has, or arithmetic on two words on other processors. The library
//! `wide` is not used, because with `safe_arch` it added six seconds to each build.

/// Number of bytes that are compared at once; most strings of an object are shorter.
pub(super) const PIECE: usize = 16;

#[cfg(target_arch = "x86_64")]
pub(super) use sse2::Piece;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use words::Piece;

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use safe_arch::{bitor_m128i, cmp_eq_mask_i8_m128i, m128i, min_u8_m128i, move_mask_i8_m128i, set_splat_i8_m128i};

    use super::PIECE;

    #[derive(Clone, Copy)]
    pub(in super::super) struct Piece(m128i);

    impl Piece {
        #[inline]
        pub fn new(bytes: [u8; PIECE]) -> Self {
            Self(m128i::from(bytes))
        }

        #[inline]
        pub fn with(self, byte: u8) -> Self {
            Self(bitor_m128i(self.0, splat(byte)))
        }

        #[inline]
        pub fn equal(self, byte: u8) -> u32 {
            move_mask_i8_m128i(cmp_eq_mask_i8_m128i(self.0, splat(byte))).cast_unsigned()
        }

        /// One bit for each byte: 1 if the byte is at most `byte`.
        #[inline]
        pub fn up_to(self, byte: u8) -> u32 {
            move_mask_i8_m128i(cmp_eq_mask_i8_m128i(min_u8_m128i(self.0, splat(byte)), self.0)).cast_unsigned()
        }
    }

    #[inline]
    fn splat(byte: u8) -> m128i {
        set_splat_i8_m128i(byte.cast_signed())
    }
}

/// Comparisons with words of eight bytes, for processors without SSE2.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod words {
    use super::PIECE;

    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;

    #[derive(Clone, Copy)]
    pub(in super::super) struct Piece([u64; 2]);

    impl Piece {
        #[inline]
        pub fn new(bytes: [u8; PIECE]) -> Self {
            Self([0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))))
        }

        #[inline]
        pub fn with(self, byte: u8) -> Self {
            Self(self.0.map(|word| word | (ONES * u64::from(byte))))
        }

        #[inline]
        pub fn equal(self, byte: u8) -> u32 {
            // The high bit of each byte that differs in any bit.
            self.bits(|word| {
                let differs = word ^ (ONES * u64::from(byte));
                !(((differs & !HIGH) + !HIGH) | differs)
            })
        }

        /// One bit for each byte: 1 if the byte is at most `byte`, which must be below 128.
        #[inline]
        pub fn up_to(self, byte: u8) -> u32 {
            // Seven bits plus the difference to 128 carry into the high bit if they are larger.
            self.bits(|word| !(((word & !HIGH) + ONES * u64::from(127 - byte)) | word))
        }

        /// Packs the high bits of all bytes together.
        #[inline]
        fn bits(self, each: impl Fn(u64) -> u64) -> u32 {
            const SIDE_BY_SIDE: u64 = 0x0102_0408_1020_4080;
            let byte = |word| ((each(word) & HIGH) >> 7).wrapping_mul(SIDE_BY_SIDE).to_be_bytes()[0];
            u32::from(u16::from_le_bytes(self.0.map(byte)))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The SSE2 code and the word code agree with a byte-by-byte search.
        #[test]
        fn both_ways_find_each_byte(mut bytes in any::<[u8; PIECE]>(), byte in 0_u8..128, places in any::<u16>()) {
            for at in (0..PIECE).filter(|at| places >> at & 1 == 1) {
                bytes[at] = byte ^ (bytes[at] & 1);
            }
            let slow = |wanted: &dyn Fn(u8) -> bool| {
                bytes.iter().enumerate().fold(0, |bits, (at, byte)| bits | u32::from(wanted(*byte)) << at)
            };
            let expected = (slow(&|one| one == byte), slow(&|one| one <= byte), slow(&|one| one | 0x20 == byte));
            let piece = Piece::new(bytes);
            prop_assert_eq!((piece.equal(byte), piece.up_to(byte), piece.with(0x20).equal(byte)), expected);
            let piece = words::Piece::new(bytes);
            prop_assert_eq!((piece.equal(byte), piece.up_to(byte), piece.with(0x20).equal(byte)), expected);
        }
    }
}
