//! SHA-256 digests as the formats write them: 64 lower-case hex digits and nothing else.

use std::fmt;

use sha2::{Digest as _, Sha256};

pub const HEX: usize = 64;

/// A SHA-256 digest. A digest displays as its hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Parses exactly 64 lower-case hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let text: &[u8; HEX] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// Parses `sha256:` and 64 lower-case hex digits, as the OCI specifications write digests. Digests of other
    /// algorithms are refused.
    pub fn from_oci(text: &str) -> Option<Self> {
        Self::from_hex(text.strip_prefix("sha256:")?)
    }
}

impl From<Sha256> for Digest {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_64_lower_case_digits_are_a_digest() {
        let empty = Digest::of(b"");
        assert_eq!(empty.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(Digest::from_hex(&empty.to_string()), Some(empty));
        assert_eq!(Digest::from_oci(&format!("sha256:{empty}")), Some(empty));
        let upper = empty.to_string().to_uppercase();
        let long = format!("{empty}0");
        for wrong in ["", "e3b0", upper.as_str(), long.as_str(), &"../".repeat(22)[..64]] {
            assert_eq!(Digest::from_hex(wrong), None, "{wrong}");
        }
        assert_eq!(Digest::from_oci(&format!("sha512:{empty}")), None);
    }
}
