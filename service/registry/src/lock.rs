//! The lock file: the digest of each image at the time of locking. With the lock file, a rollback gets the locked
//! image, even if the tag refers to another image now.
//!
//! This module owns the format of `images.lock`. The file is sorted YAML with one entry per image, so a change of one
//! image changes a few lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::reference::{FullName, Reference, ReferenceError};

pub const VERSION: u32 = 1;
/// Largest lock file, in bytes: enough for some hundred thousand images.
const TEXT_BYTES_MAX: usize = 32 << 20;
const IMAGES_MAX: usize = 200_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// The entry of each image by full name, with the image's spelling in the file.
    images: BTreeMap<FullName, (String, Locked)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    pub digest: String,
    /// The time at which the image's digest was looked up (RFC 3339).
    pub resolved: String,
    pub registry: String,
    /// The signers and their evidence, if signatures were verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    images: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    image: String,
    #[serde(flatten)]
    locked: Locked,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is not YAML, or has keys that a lock file must not have.
    #[error("it is no lock file: {0}; write it anew with `pin --lock`")]
    Shape(String),
    #[error("it has version {0}; this program reads version {VERSION}: write it anew with `pin --lock`")]
    Version(u32),
    #[error("`{image}` has two digests, {one} and {two}: delete the entry that is wrong")]
    Twice { image: String, one: String, two: String },
    #[error("the digest of `{image}` is none: `{digest}`; write it anew with `pin --lock`")]
    Digest { image: String, digest: String },
    #[error("`{image}` cannot be locked: {error}")]
    Image { image: String, error: ReferenceError },
    #[error("it is larger than {} MiB or has more than {IMAGES_MAX} images: lock those alone that this cluster runs", TEXT_BYTES_MAX >> 20)]
    TooLarge,
}

impl Lock {
    pub fn parse(text: &str) -> Result<Self, Error> {
        /// The version of a lock file. The version is read first, so that an unknown version is reported before other
        /// errors.
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::TooLarge);
        }
        let shape = |error: serde_saphyr::Error| Error::Shape(error.to_string());
        let Version { version } = serde_saphyr::from_str(text).map_err(shape)?;
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let file: File = serde_saphyr::from_str(text).map_err(shape)?;
        if file.images.len() > IMAGES_MAX {
            return Err(Error::TooLarge);
        }
        let mut lock = Self::default();
        for Entry { image, locked } in file.images {
            if !is_digest(&locked.digest) {
                return Err(Error::Digest { image, digest: locked.digest });
            }
            let digest = locked.digest.clone();
            match lock.insert(&image, locked)? {
                Some(before) if before.digest != digest => {
                    return Err(Error::Twice { image, one: before.digest, two: digest });
                }
                _ => {}
            }
        }
        Ok(lock)
    }

    pub fn get(&self, name: &FullName) -> Option<&Locked> {
        self.images.get(name).map(|(_, locked)| locked)
    }

    /// Adds or replaces the entry of an image; returns the former entry, if there was one.
    pub fn insert(&mut self, image: &str, locked: Locked) -> Result<Option<Locked>, Error> {
        let reference = Reference::parse(image).map_err(|error| Error::Image { image: image.to_owned(), error })?;
        let before = self.images.insert(reference.full_name(), (image.to_owned(), locked));
        Ok(before.map(|(_, locked)| locked))
    }

    /// Every image as it is spelled in the file, sorted by full name.
    pub fn images(&self) -> impl Iterator<Item = (&str, &Locked)> {
        self.images.values().map(|(image, locked)| (image.as_str(), locked))
    }

    pub fn text(&self) -> String {
        let mut text = format!(
            "# Written by `longhaul-service pin --lock`: images with the digests that they had.\nversion: {VERSION}\nimages:\n"
        );
        for (image, locked) in self.images() {
            // JSON is YAML; texts from outside are quoted this way.
            let quoted = |text: &str| serde_json::Value::from(text).to_string();
            let _ = writeln!(text, "- image: {}\n  digest: {}", quoted(image), locked.digest);
            let _ = writeln!(text, "  resolved: {}", quoted(&locked.resolved));
            let _ = writeln!(text, "  registry: {}", quoted(&locked.registry));
            if !locked.evidence.is_empty() {
                text.push_str("  evidence:\n");
                text.extend(locked.evidence.iter().map(|one| format!("  - {}\n", quoted(one))));
            }
        }
        if self.images.is_empty() {
            text = text.replace("images:\n", "images: []\n");
        }
        text
    }
}

/// Whether a text is `sha256:` with 64 lower-case hex digits.
fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(digit: char) -> Locked {
        Locked {
            digest: format!("sha256:{}", digit.to_string().repeat(64)),
            resolved: "2026-01-02T03:04:05Z".into(),
            registry: "r.example:5000".into(),
            evidence: vec!["key: a \"b\", bundle".into()],
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut lock = Lock::default();
        assert_eq!(Lock::parse(&lock.text()), Ok(lock.clone()));
        lock.insert("r.example:5000/b:1", locked('b')).unwrap();
        lock.insert("a", Locked { evidence: Vec::new(), ..locked('a') }).unwrap();
        assert_eq!(Lock::parse(&lock.text()), Ok(lock.clone()), "{}", lock.text());
        assert_eq!(lock.images().map(|(image, _)| image).collect::<Vec<_>>(), ["a", "r.example:5000/b:1"]);
        let digest = |image: &str| lock.get(&Reference::parse(image).unwrap().full_name()).map(|known| &*known.digest);
        assert_eq!(digest("docker.io/library/a:latest"), Some(&*locked('a').digest));
        assert_eq!(digest("b"), None);
        assert!(lock.insert("a@sha256:0", locked('a')).is_err());
    }

    /// An image has one entry, and one digest, for all spellings of its registry's name.
    #[test]
    fn another_spelling_is_the_same_image() {
        let mut lock = Lock::default();
        lock.insert("registry.corp/app:1", locked('a')).unwrap();
        lock.insert("nginx", locked('b')).unwrap();
        for (image, digit) in [
            ("REGISTRY.corp/app:1", 'a'),
            ("registry.corp:443/app:1", 'a'),
            ("registry-1.docker.io/library/nginx", 'b'),
            ("registry-1.docker.io/nginx", 'b'),
            ("Index.docker.io:443/nginx:latest", 'b'),
        ] {
            let known = lock.get(&Reference::parse(image).unwrap().full_name());
            assert_eq!(known.map(|known| &*known.digest), Some(&*locked(digit).digest), "{image}");
        }
        assert_eq!(lock.insert("Registry.corp:443/app:1", locked('c')).unwrap(), Some(locked('a')));
    }

    #[test]
    fn what_is_no_lock_is_refused_with_a_remedy() {
        let entry = |digest: &str| format!("- {{image: a, digest: {digest:?}, resolved: x, registry: r}}\n");
        let file = |entries: &str| format!("version: 1\nimages:\n{entries}");
        let (a, b) = (locked('a').digest, locked('b').digest);
        let twice = Lock::parse(&file(&(entry(&a) + &entry(&b)))).unwrap_err();
        assert!(twice.to_string().contains("two digests"), "{twice}");
        assert!(Lock::parse(&file(&(entry(&a) + &entry(&a)))).is_ok());
        assert_eq!(Lock::parse("version: 2\nnew: 1\n"), Err(Error::Version(2)));
        for none in ["sha256:xyz", "", "sha512:ab", &a.to_uppercase()] {
            assert!(matches!(Lock::parse(&file(&entry(none))), Err(Error::Digest { .. })), "{none}");
        }
        assert!(matches!(Lock::parse("images: []"), Err(Error::Shape(_))));
        assert!(matches!(Lock::parse("version: 1\nimage: a\n"), Err(Error::Shape(_))));
    }
}
