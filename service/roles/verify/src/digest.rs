//! Digests, and the image whose signatures are verified.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};

/// The SHA-256 digest of a manifest, a blob or a log entry. Signatures refer only to SHA-256 digests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a digest that signatures can bind: write sha256: and 64 lower-case hex digits")]
pub struct DigestError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Digest of the image's manifest or index, computed from the bytes that the registry sent.
    pub digest: Digest,
    /// The repository with its host and without tag, as Go tools write it (`index.docker.io/library/nginx`), for
    /// [`ReferenceCheck`](crate::ReferenceCheck). `None` if the repository is not compared.
    pub repository: Option<String>,
}

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        let hash = digest(&SHA256, bytes);
        let mut value = [0; 32];
        value.copy_from_slice(hash.as_ref());
        Self(value)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest as 64 lower-case hex digits.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Parses 64 lower-case hex digits without a prefix.
    pub fn from_hex(text: &str) -> Result<Self, DigestError> {
        if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(DigestError);
        }
        let mut value = [0; 32];
        hex::decode_to_slice(text, &mut value).map_err(|_| DigestError)?;
        Ok(Self(value))
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        Self::from_hex(text.strip_prefix("sha256:").ok_or(DigestError)?)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_spelling_of_a_sha256_digest_is_read() {
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b""), text.parse().unwrap());
        assert_eq!(Digest::of(b"").to_string(), text);
        for wrong in [&text[7..], &text[..70], &text.to_uppercase(), "sha512:00", "sha256:", ""] {
            assert_eq!(wrong.parse::<Digest>(), Err(DigestError), "{wrong}");
        }
    }
}
