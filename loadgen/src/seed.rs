//! Independent random streams that come from a run's seed.
//!
//! Each user of random numbers names its stream, so that an additional draw in one stream does not change other
//! streams. Owns no state of random streams.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

/// The length of a uid in Kubernetes' form.
pub(crate) const UID_LEN: usize = 36;

/// The random stream with this name, for the run with this seed. Equal arguments give equal streams of numbers on every
/// machine.
pub(crate) fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(name.as_bytes());
    ChaCha8Rng::from_seed(hash.finalize().into())
}

/// A random version 4 UUID (RFC 9562) as text.
pub(crate) fn uid(rng: &mut ChaCha8Rng) -> [u8; UID_LEN] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut raw = [0u8; 16];
    rng.fill(&mut raw);
    raw[6] = (raw[6] & 0x0f) | 0x40;
    raw[8] = (raw[8] & 0x3f) | 0x80;
    let mut text = [b'-'; UID_LEN];
    let mut at = 0;
    for (i, byte) in raw.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            at += 1;
        }
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 0xf)];
        at += 2;
    }
    text
}

/// Advances the random stream by as much as [`uid`] does.
pub(crate) fn pass_uid(rng: &mut ChaCha8Rng) {
    rng.fill(&mut [0u8; 16]);
}

/// A random UUID as a `String`; see [`uid`].
pub(crate) fn uid_string(rng: &mut ChaCha8Rng) -> String {
    uid(rng).iter().map(|&b| char::from(b)).collect()
}

/// `length` random characters from the alphabet of Kubernetes' generated name suffixes. One random byte is used for
/// each character, because texts of a megabyte must be made fast too.
pub(crate) fn suffix(rng: &mut ChaCha8Rng, length: usize) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut text = vec![0u8; length];
    rng.fill(&mut text[..]);
    for byte in &mut text {
        // Some characters come a tenth more often than others, which is harmless for names and fillers.
        *byte = ALPHABET[usize::from(*byte) * ALPHABET.len() / 256];
    }
    String::from_utf8(text).expect("the alphabet is ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_version_4_and_differ() {
        let mut rng = stream(7, "uids");
        let (a, b) = (uid_string(&mut rng), uid_string(&mut rng));
        assert_ne!(a, b);
        for text in [a, b] {
            let parts: Vec<usize> = text.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{text}");
            assert_eq!(&text[14..15], "4", "{text}");
            assert!("89ab".contains(&text[19..20]), "{text}");
        }
    }

    #[test]
    fn a_uid_that_was_passed_over_is_not_the_next() {
        let (mut passed, mut drawn) = (stream(7, "uids"), stream(7, "uids"));
        pass_uid(&mut passed);
        uid(&mut drawn);
        assert_eq!(uid(&mut passed), uid(&mut drawn));
    }

    #[test]
    fn suffixes_are_valid_in_names() {
        let text = suffix(&mut stream(7, "suffix"), 4096);
        assert_eq!(text.len(), 4096);
        assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
        let distinct: std::collections::BTreeSet<u8> = text.bytes().collect();
        assert_eq!(distinct.len(), 27);
    }

    #[test]
    fn streams_are_independent_and_repeat() {
        let draw = |seed, name| stream(seed, name).random::<u64>();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }
}
