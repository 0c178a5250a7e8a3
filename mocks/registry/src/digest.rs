//! Content digests, written as in the OCI image specification (descriptor.md, "Digests").
//!
//! Owns parsing, comparing and computing digests. An algorithm that the specification does not register is refused,
//! because the registry could not check its digests.

use std::fmt;

use sha2::{Digest as _, Sha256, Sha512};

/// A digest as text: `sha256:` and 64 hexadecimal digits, or `sha512:` and 128 hexadecimal digits; always lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a digest: write `sha256:` and 64 lower-case hexadecimal digits")]
pub struct NotADigest {
    /// The text that is no digest, cut to a printable length.
    pub text: String,
}

/// A SHA-256 that is computed over data in pieces.
#[derive(Clone, Default)]
pub(super) struct Running(Sha256);

impl Digest {
    /// Checks the spelling of a digest.
    pub fn parse(text: &str) -> Result<Self, NotADigest> {
        let digits = match text.split_once(':') {
            Some(("sha256", hex)) if hex.len() == 64 => hex,
            Some(("sha512", hex)) if hex.len() == 128 => hex,
            _ => return Err(NotADigest::of(text)),
        };
        if digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotADigest::of(text))
        }
    }

    pub fn sha256(bytes: &[u8]) -> Self {
        let mut running = Running::default();
        running.update(bytes);
        running.finish()
    }

    pub fn matches(&self, bytes: &[u8]) -> bool {
        if self.is_sha256() {
            Self::sha256(bytes) == *self
        } else {
            Self(spell("sha512", &Sha512::digest(bytes))) == *self
        }
    }

    /// The digest as text, as in a URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn is_sha256(&self) -> bool {
        self.0.starts_with("sha256:")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl NotADigest {
    fn of(text: &str) -> Self {
        Self { text: text.chars().take(140).collect() }
    }
}

impl Running {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> Digest {
        Digest(spell("sha256", &self.0.finalize()))
    }
}

fn spell(algorithm: &str, bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = format!("{algorithm}:");
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_answers() {
        // FIPS 180-4 examples for "abc".
        assert_eq!(
            Digest::sha256(b"abc").as_str(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let long = "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                    2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
        assert!(Digest::parse(long).unwrap().matches(b"abc"));
        assert!(!Digest::parse(long).unwrap().matches(b"abd"));
    }

    #[test]
    fn other_spellings_are_refused() {
        let good = Digest::sha256(b"abc").to_string();
        for bad in
            ["", "sha256:", "abc", &good[..70], &good.to_uppercase(), &good.replace("sha256", "md5"), "sha256:zz"]
        {
            assert!(Digest::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        /// A digest matches its content, however the content is cut into pieces, and matches no other content.
        #[test]
        fn a_digest_does_not_depend_on_the_cuts(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
            let whole = parts.concat();
            let mut running = Running::default();
            for part in &parts {
                running.update(part);
            }
            let digest = running.finish();
            prop_assert!(digest.matches(&whole));
            prop_assert_eq!(&Digest::parse(digest.as_str()).unwrap(), &digest);
            let mut other = whole;
            other.push(0);
            prop_assert!(!digest.matches(&other));
        }
    }
}
