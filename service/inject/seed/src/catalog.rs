//! The catalog: the names and manifests of the payload, with the media types of the manifests.
//!
//! The injector writes the catalog, and the injected program reads it. The catalog is a text file in the payload beside
//! the blobs, so that the injected program need not parse JSON:
//!
//! ```text
//! longhaul-catalog 1
//! manifest SHA256 BYTES MEDIA-TYPE
//! repository library/nginx
//! tag 1.25 SHA256
//! has SHA256            this manifest can be requested by its digest in this repository
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::digest::Digest;
use crate::failure::Failure;

const HEADER: &str = "longhaul-catalog 1";
/// Largest catalog, in bytes: enough for some hundred images, and little compared with the 6 MB that the whole program
/// uses.
pub const CATALOG_BYTES_MAX: usize = 256 << 10;
/// Longest repository name, in bytes (distribution project).
const REPOSITORY_BYTES_MAX: usize = 255;
/// Longest tag, in bytes (OCI distribution specification).
const TAG_BYTES_MAX: usize = 128;
/// Longest media type, in bytes (RFC 6838 allows 127 before and 127 after the slash).
const MEDIA_TYPE_BYTES_MAX: usize = 255;

/// The manifests and tags to serve, by repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// Every manifest with its size and media type.
    pub manifests: BTreeMap<Digest, Manifest>,
    pub repositories: BTreeMap<String, Repository>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub bytes: u64,
    pub media_type: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repository {
    /// Tags, each with the digest of its manifest.
    pub tags: BTreeMap<String, Digest>,
    /// Manifests that can be requested by digest, including the manifests of the tags.
    pub manifests: BTreeSet<Digest>,
}

impl Catalog {
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (digest, manifest) in &self.manifests {
            let _ = writeln!(text, "manifest {digest} {} {}", manifest.bytes, manifest.media_type);
        }
        for (name, repository) in &self.repositories {
            let _ = writeln!(text, "repository {name}");
            for (tag, digest) in &repository.tags {
                let _ = writeln!(text, "tag {tag} {digest}");
            }
            for digest in &repository.manifests {
                let _ = writeln!(text, "has {digest}");
            }
        }
        text
    }

    /// Parses a catalog. A catalog with invalid names or with digests of unlisted manifests is refused.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut catalog = Self::default();
        let mut current: Option<String> = None;
        let wrong = |line: usize, what| Failure::Catalog { line: line + 1, what };
        let mut lines = text.lines().enumerate();
        if lines.next().is_none_or(|(_, line)| line != HEADER) {
            return Err(wrong(0, "not a catalog"));
        }
        for (at, line) in lines {
            let mut words = line.split(' ');
            let (key, first, second, third, more) =
                (words.next(), words.next(), words.next(), words.next(), words.next());
            let digest = |text: Option<&str>| {
                text.and_then(Digest::from_hex).ok_or_else(|| wrong(at, "a digest has 64 lower-case hex digits"))
            };
            match (key, first, second, third, more) {
                (Some("manifest"), first, Some(bytes), Some(media_type), None) => {
                    let bytes = bytes.parse().map_err(|_| wrong(at, "not a number"))?;
                    if !is_media_type(media_type) {
                        return Err(wrong(at, "not a media type"));
                    }
                    let manifest = Manifest { bytes, media_type: media_type.to_owned() };
                    catalog.manifests.insert(digest(first)?, manifest);
                }
                (Some("repository"), Some(name), None, None, None) if is_repository(name) => {
                    catalog.repositories.entry(name.to_owned()).or_default();
                    current = Some(name.to_owned());
                }
                (Some(key @ ("tag" | "has")), Some(first), second, None, None) => {
                    let digest = digest(if key == "tag" { second } else { Some(first) })?;
                    if !catalog.manifests.contains_key(&digest) {
                        return Err(wrong(at, "a manifest that is not listed"));
                    }
                    let repository = current.as_ref().and_then(|name| catalog.repositories.get_mut(name));
                    let repository = repository.ok_or_else(|| wrong(at, "no repository before it"))?;
                    repository.manifests.insert(digest);
                    if key == "tag" {
                        if !is_tag(first) {
                            return Err(wrong(at, "not a tag"));
                        }
                        repository.tags.insert(first.to_owned(), digest);
                    }
                }
                _ => return Err(wrong(at, "not a line of a catalog")),
            }
        }
        Ok(catalog)
    }
}

/// Whether `text` is a valid repository name. The check is strict, because names are copied into HTTP answers.
pub fn is_repository(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|byte| plain(*byte))
            && bytes.iter().all(|byte| plain(*byte) || matches!(byte, b'.' | b'_' | b'-'))
    };
    text.len() <= REPOSITORY_BYTES_MAX && text.split('/').all(part)
}

pub fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    text.len() <= TAG_BYTES_MAX
        && bytes.first().is_some_and(|byte| word(*byte))
        && bytes.iter().all(|byte| word(*byte) || matches!(byte, b'.' | b'-'))
}

/// Whether `text` is valid in a `Content-Type` header.
pub fn is_media_type(text: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
    let half = |half: &str| !half.is_empty() && half.bytes().all(token);
    text.len() <= MEDIA_TYPE_BYTES_MAX && text.split_once('/').is_some_and(|(a, b)| half(a) && half(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Catalog {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let manifest = |bytes| Manifest { bytes, media_type: "application/vnd.oci.image.manifest.v1+json".to_owned() };
        let repository =
            Repository { tags: BTreeMap::from([("1.25".to_owned(), a)]), manifests: BTreeSet::from([a, b]) };
        Catalog {
            manifests: BTreeMap::from([(a, manifest(1)), (b, manifest(2))]),
            repositories: BTreeMap::from([
                ("library/nginx".to_owned(), repository),
                ("empty".to_owned(), Repository::default()),
            ]),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(Catalog::parse(&sample().to_text()).unwrap(), sample());
        assert_eq!(Catalog::parse("longhaul-catalog 1\n").unwrap(), Catalog::default());
    }

    #[test]
    fn what_could_not_be_asked_for_is_refused() {
        let text = sample().to_text();
        let refusal = |from: &str, to: &str| Catalog::parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert_eq!(refusal("catalog 1", "catalog 2"), "catalog: line 1: not a catalog");
        assert_eq!(refusal(" 1 application", " x application"), "catalog: line 3: not a number");
        assert_eq!(refusal("application/", "application "), "catalog: line 2: not a line of a catalog");
        assert_eq!(refusal("application/", "a\"b/"), "catalog: line 2: not a media type");
        assert_eq!(refusal("library/nginx", "../etc"), "catalog: line 5: not a line of a catalog");
        assert_eq!(refusal("tag 1.25", "tag .."), "catalog: line 6: not a tag");
        let other = Digest::of(b"other").to_string();
        assert_eq!(
            refusal(&format!("tag 1.25 {}", Digest::of(b"a")), &format!("tag 1.25 {other}")),
            "catalog: line 6: a manifest that is not listed"
        );
        assert_eq!(refusal("repository empty", "tag x y"), "catalog: line 4: a digest has 64 lower-case hex digits");
    }

    #[test]
    fn names() {
        for name in ["a", "library/nginx", "a.b/c-d/e__f", "0"] {
            assert!(is_repository(name), "{name}");
        }
        for name in ["", "/", "a/", "/a", "a//b", "../a", "a/..", "A", "a b", "a/%2e", ".a", &"a".repeat(256)] {
            assert!(!is_repository(name), "{name}");
        }
        assert!(is_tag("v1.2-x_y") && is_tag("_") && !is_tag("") && !is_tag(".a") && !is_tag("a/b") && !is_tag("a:b"));
    }
}
