//! The seal of a stored value: an authentication code (HMAC-SHA-256) over the value's name, its expiry and the value.
//!
//! The format is `1 | expiry in milliseconds since 1970, big endian (8) | code (32) | value`. The code covers the whole
//! name, so that a stored value cannot be moved to another image, rule or key. The code also covers the expiry, so that
//! no attacker can postpone the expiry. The name of a value in Redis is an authentication code too, which reveals
//! nothing about images and has a fixed length.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use service_core::known::Known;

/// The format version, which is the first byte of a sealed value. A value with another version byte is invalid.
const VERSION: u8 = 1;
pub const HEAD_BYTES: usize = 1 + 8 + 32;
/// Minimum number of bytes of the secret key: as many as the authentication code has. A shorter key would be easier to
/// guess than the code.
const KEY_BYTES_MIN: usize = 32;
/// Maximum number of bytes of a key file, which has one line.
const KEY_BYTES_MAX: usize = 4096;
/// Prefix of the input for names, so that the code of a name never equals the code of a value.
const NAMES: &[u8] = b"longhaul name\0";
const VALUES: &[u8] = b"longhaul value\0";

pub trait Seal: Send + Sync + 'static {
    /// The name of a value in Redis.
    fn name(&self, key: &str) -> String;

    fn close(&self, key: &str, value: &[u8], life: Duration, now: SystemTime) -> Vec<u8>;

    /// Opens a value that was sealed for the same key, if it has not expired.
    fn open(&self, key: &str, sealed: &[u8], now: SystemTime) -> Opened;
}

#[derive(Debug, PartialEq, Eq)]
pub enum Opened {
    /// The value is valid and was sealed for the requested key.
    Good(Known),
    /// The value was sealed for the requested key but has expired, and Redis has not removed it yet.
    Over,
    /// The value was sealed with another secret, or for another key.
    Foreign,
}

/// The seal, with the secret that all processes of a service share.
pub struct Hmac(hmac::Key);

impl Hmac {
    /// Reads the secret from the file at `path`: at least 32 bytes, without a final newline.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let key = bytes.trim_ascii_end();
        if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&key.len()) {
            let (shown, has) = (path.display(), key.len());
            let make = format!("make one with `openssl rand -hex 32 > {shown}`");
            return Err(format!("{shown} has {has} bytes: a key has {KEY_BYTES_MIN} to {KEY_BYTES_MAX}; {make}"));
        }
        Ok(Self::new(key))
    }

    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The expiry in milliseconds since 1970 and the value; `None` if the authentication code is wrong.
    fn proven<'a>(&self, key: &str, sealed: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let (version, rest) = sealed.split_first()?;
        let (end, rest) = rest.split_first_chunk::<8>()?;
        let (code, value) = rest.split_at_checked(32)?;
        if *version != VERSION {
            return None;
        }
        hmac::verify(&self.0, &Self::covered(key, *end, value), code).ok()?;
        Some((u64::from_be_bytes(*end), value))
    }

    /// The bytes that the authentication code covers. The name's length comes first, so that other divisions into name
    /// and value give other bytes.
    fn covered(key: &str, end: [u8; 8], value: &[u8]) -> Vec<u8> {
        [VALUES, &(key.len() as u64).to_be_bytes(), key.as_bytes(), &end, value].concat()
    }
}

impl Seal for Hmac {
    fn name(&self, key: &str) -> String {
        format!("longhaul:{}", hex::encode(hmac::sign(&self.0, &[NAMES, key.as_bytes()].concat())))
    }

    fn close(&self, key: &str, value: &[u8], life: Duration, now: SystemTime) -> Vec<u8> {
        let end = now.checked_add(life).unwrap_or(now).duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = u64::try_from(end.as_millis()).unwrap_or(u64::MAX).to_be_bytes();
        let code = hmac::sign(&self.0, &Self::covered(key, end, value));
        [&[VERSION], &end[..], code.as_ref(), value].concat()
    }

    fn open(&self, key: &str, sealed: &[u8], now: SystemTime) -> Opened {
        let Some((end, value)) = self.proven(key, sealed) else { return Opened::Foreign };
        let end = UNIX_EPOCH.checked_add(Duration::from_millis(end));
        let life = end.and_then(|end| end.duration_since(now).ok()).filter(|life| !life.is_zero());
        life.map_or(Opened::Over, |life| Opened::Good(Known { value: value.to_vec(), life }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_mins(1);

    fn seal() -> Hmac {
        Hmac::new(&[7; 32])
    }

    #[test]
    fn what_was_closed_opens_until_its_end() {
        let (seal, now) = (seal(), SystemTime::now());
        let sealed = seal.close("a", b"yes", LIFE, now);
        let Opened::Good(known) = seal.open("a", &sealed, now + LIFE / 2) else { panic!("it is ours") };
        assert_eq!(known.value, b"yes");
        assert!(known.life <= LIFE / 2 && known.life + Duration::from_millis(2) > LIFE / 2, "{known:?}");
        assert_eq!(seal.open("a", &sealed, now + LIFE), Opened::Over, "nobody else wrote it");
        assert_eq!(seal.name("a").len(), "longhaul:".len() + 64);
        assert_ne!(seal.name("a"), seal.name("b"));
    }

    /// A sealed value does not open if its bytes were changed, or if it is stored under another name.
    #[test]
    fn nothing_else_opens() {
        let (seal, now) = (seal(), SystemTime::now());
        let sealed = seal.close("a", b"yes", LIFE, now);
        assert_eq!(seal.open("b", &sealed, now), Opened::Foreign, "another name");
        assert_eq!(Hmac::new(&[8; 32]).open("a", &sealed, now), Opened::Foreign, "another key");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(seal.open("a", &changed, now), Opened::Foreign, "byte {at}");
        }
        for length in 0..sealed.len() {
            assert_eq!(seal.open("a", &sealed[..length], now), Opened::Foreign, "{length} bytes");
        }
        assert_eq!(seal.open("a", &[sealed.as_slice(), b"!"].concat(), now), Opened::Foreign);
    }

    #[test]
    fn a_key_that_is_none_says_how_to_make_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let said = Hmac::read(&path).err().unwrap();
        assert!(said.contains("No such file"), "{said}");
        std::fs::write(&path, "short\n").unwrap();
        let said = Hmac::read(&path).err().unwrap();
        assert!(said.contains("has 5 bytes") && said.contains("openssl rand -hex 32"), "{said}");
        std::fs::write(&path, format!("{}\n", "a".repeat(64))).unwrap();
        assert!(Hmac::read(&path).is_ok());
    }
}
