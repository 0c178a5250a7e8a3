//! The layouts of times that programs and the kernel write into memory.
//!
//! This module is pure. On x86-64 and arm64, a time is two words of 64 bits.

pub const SECOND: i64 = 1_000_000_000;
pub const MILLISECOND: i128 = 1_000_000;

/// The layout of a time in memory: seconds and a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `struct timespec`: nanoseconds.
    Nanos,
    /// `struct timeval`: microseconds.
    Micros,
}

impl Form {
    /// Number of nanoseconds in one unit of the fraction.
    fn unit(self) -> i64 {
        match self {
            Self::Nanos => 1,
            Self::Micros => 1000,
        }
    }

    /// Converts a time to nanoseconds; `None` for a value that the kernel refuses.
    pub fn nanos(self, [seconds, part]: [i64; 2]) -> Option<i128> {
        let is_valid = seconds >= 0 && (0..SECOND / self.unit()).contains(&part);
        is_valid.then(|| i128::from(seconds) * i128::from(SECOND) + i128::from(part * self.unit()))
    }

    /// Converts nanoseconds to this layout, rounded down; a time that is too large becomes the largest possible time.
    pub fn words(self, nanos: i128) -> [i64; 2] {
        let second = i128::from(SECOND);
        let seconds = i64::try_from(nanos.div_euclid(second)).unwrap_or(i64::MAX);
        let part = i64::try_from(nanos.rem_euclid(second)).unwrap_or(0) / self.unit();
        [seconds, part]
    }

    /// Converts nanoseconds to this layout, rounded up, so that a wait is never shorter than requested.
    pub fn words_up(self, nanos: i128) -> [i64; 2] {
        self.words(nanos + i128::from(self.unit() - 1))
    }
}

/// Converts 16 bytes of memory to two words.
pub fn words(bytes: [u8; 16]) -> [i64; 2] {
    let (first, second) = bytes.split_at(8);
    [first, second].map(|half| i64::from_ne_bytes(half.try_into().expect("a half has eight bytes")))
}

/// Converts two words to 16 bytes of memory.
pub fn bytes(words: [i64; 2]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&words[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&words[1].to_ne_bytes());
    bytes
}

/// The `int` in the lower half of a register. The upper half of the register may have any value.
pub fn lower_half(register: u64) -> i32 {
    let [first, second, third, fourth, ..] = register.to_le_bytes();
    i32::from_le_bytes([first, second, third, fourth])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_kernel_does() {
        assert_eq!(Form::Nanos.nanos([1, 5]), Some(1_000_000_005));
        assert_eq!(Form::Micros.nanos([1, 5]), Some(1_000_005_000));
        for bad in [[-1, 0], [0, -1], [0, SECOND]] {
            assert_eq!(Form::Nanos.nanos(bad), None, "{bad:?}");
        }
        assert_eq!(Form::Micros.nanos([0, 1_000_000]), None);
        assert_eq!(Form::Micros.words(1_000_005_999), [1, 5]);
        assert_eq!(Form::Micros.words_up(1_000_005_001), [1, 6]);
        assert_eq!(Form::Micros.words_up(999_999_001), [1, 0]);
        assert_eq!(Form::Nanos.words(i128::MAX), [i64::MAX, i64::try_from(i128::MAX % 1_000_000_000).unwrap()]);
        assert_eq!(words(bytes([-3, 7])), [-3, 7]);
    }
}
