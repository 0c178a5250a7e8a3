//! Media types of manifests, and the digest that an answer states for a manifest.
//!
//! Only bytes that are a manifest may be pinned by their hash: an error page has a hash too.

use http::{HeaderMap, header};
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest as _, Sha256};

/// The `Accept` header of requests for manifests. Indexes come first, so that a registry that chooses by order returns
/// the index.
pub(super) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json";
const DIGEST_HEADER: &str = "docker-content-digest";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Manifests for several platforms.
    Index,
    /// One image: a configuration and layers.
    Image,
}

/// Why an answer gives no usable digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("no manifest: its Content-Type is none of a manifest")]
    ContentType,
    /// The body is not a JSON object with `schemaVersion` 2 and the shape of an index or image.
    #[error("no manifest: its body has not the shape of one")]
    Shape,
    #[error("no manifest: its body is something else than its Content-Type says")]
    Disagreement,
    #[error("two different digests for one manifest")]
    Digests,
    #[error("a digest that is not the one of its manifest")]
    Digest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stated {
    /// The digest that the headers state: `sha256:` and 64 hex digits.
    Digest(String),
    /// The headers state no valid digest.
    Nothing,
}

impl Kind {
    /// The kind of manifest that a `Content-Type` or `mediaType` names.
    pub fn of(media_type: &str) -> Option<Self> {
        match media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/vnd.oci.image.index.v1+json" | "application/vnd.docker.distribution.manifest.list.v2+json" => {
                Some(Self::Index)
            }
            "application/vnd.oci.image.manifest.v1+json" | "application/vnd.docker.distribution.manifest.v2+json" => {
                Some(Self::Image)
            }
            _ => None,
        }
    }
}

/// The fields of a manifest that determine its kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape {
    schema_version: u32,
    media_type: Option<String>,
    manifests: Option<Vec<Object>>,
    config: Option<Object>,
    layers: Option<Vec<Object>>,
}

/// A JSON object with any content.
struct Object;

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Object;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Object)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// The kind of the manifest in `body`; the answer had the media type `content_type`.
///
/// A document that is an index as well as an image is refused, because two readers would understand it differently
/// (CVE-2021-41190).
pub fn check(content_type: Option<&str>, body: &[u8]) -> Result<Kind, ManifestError> {
    let announced = content_type.and_then(Kind::of).ok_or(ManifestError::ContentType)?;
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(ManifestError::Shape);
    }
    // Checked for UTF-8 as a whole, because skipped parts are not read.
    let text = std::str::from_utf8(body).map_err(|_| ManifestError::Shape)?;
    let shape: Shape = serde_json::from_str(text).map_err(|_| ManifestError::Shape)?;
    let kind = match (shape.schema_version, &shape.manifests, &shape.config, &shape.layers) {
        (2, Some(_), None, None) => Kind::Index,
        (2, None, Some(_), Some(_)) => Kind::Image,
        _ => return Err(ManifestError::Shape),
    };
    let inside = match shape.media_type.as_deref() {
        None => kind,
        Some(media_type) => Kind::of(media_type).ok_or(ManifestError::Shape)?,
    };
    if inside == kind && announced == kind { Ok(kind) } else { Err(ManifestError::Disagreement) }
}

/// The digest that `headers` state. An invalid digest counts as absent; two different digests are an error.
pub fn stated(headers: &HeaderMap) -> Result<Stated, ManifestError> {
    let mut values = headers.get_all(DIGEST_HEADER).iter();
    let Some(first) = values.next() else { return Ok(Stated::Nothing) };
    if values.any(|other| other != first) {
        return Err(ManifestError::Digests);
    }
    let digest = first.to_str().ok().filter(|text| is_digest(text));
    Ok(digest.map_or(Stated::Nothing, |text| Stated::Digest(text.to_owned())))
}

/// The digest in the headers of the answer to a HEAD request; `None` if the body must be read for it.
pub(super) fn of_head(headers: &HeaderMap) -> Result<Option<String>, ManifestError> {
    let known = content_type(headers).is_none_or(|media_type| Kind::of(media_type).is_some());
    match stated(headers)? {
        Stated::Digest(digest) if known => Ok(Some(digest)),
        _ => Ok(None),
    }
}

/// The digest of the manifest in the answer to a GET request.
pub(super) fn of_get(headers: &HeaderMap, body: &[u8]) -> Result<String, ManifestError> {
    let stated = stated(headers)?;
    check(content_type(headers), body)?;
    let hashed = format!("sha256:{}", hex::encode(Sha256::digest(body)));
    match stated {
        Stated::Digest(stated) if stated != hashed => Err(ManifestError::Digest),
        _ => Ok(hashed),
    }
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default())
}

fn is_digest(text: &str) -> bool {
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.strip_prefix("sha256:").is_some_and(|digits| digits.len() == 64 && digits.bytes().all(lower_hex))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    const IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";

    #[test]
    fn the_four_kinds_and_nothing_else() {
        let index = br#"{"schemaVersion":2,"manifests":[{"digest":"x"}]}"#;
        let image = br#"{"schemaVersion":2,"config":{},"layers":[{}],"annotations":{"a":"b"}}"#;
        assert_eq!(check(Some(INDEX), index), Ok(Kind::Index));
        assert_eq!(check(Some("application/vnd.oci.image.INDEX.v1+json; charset=utf-8"), index), Ok(Kind::Index));
        assert_eq!(check(Some(IMAGE), image), Ok(Kind::Image));
        assert_eq!(check(Some(INDEX), image), Err(ManifestError::Disagreement));
        assert_eq!(check(None, index), Err(ManifestError::ContentType));
        assert_eq!(check(Some("application/json"), index), Err(ManifestError::ContentType));
        let mut odd = image.to_vec();
        *odd.iter_mut().rfind(|byte| **byte == b'b').unwrap() = 0xff;
        assert_eq!(check(Some(IMAGE), &odd), Err(ManifestError::Shape), "what is skipped must be UTF-8 too");
        for body in [
            "",
            "null",
            "2",
            "[2,null,[],null,null]",
            "{",
            r#"{"schemaVersion":"2","manifests":[]}"#,
            r#"{"schemaVersion":2,"manifests":{}}"#,
            r#"{"schemaVersion":2,"manifests":[1]}"#,
            r#"{"schemaVersion":2,"manifests":[]} x"#,
            r#"{"schemaVersion":2,"manifests":[],"manifests":[]}"#,
            r#"{"schemaVersion":2,"config":{}}"#,
            "{\"schemaVersion\":2,\"manifests\":[{\"a\":\"\u{0}\"}]}",
        ] {
            assert_eq!(check(Some(INDEX), body.as_bytes()), Err(ManifestError::Shape), "{body}");
        }
        let deep = format!(r#"{{"schemaVersion":2,"manifests":[{{"a":{}}}]}}"#, "[".repeat(100_000));
        assert_eq!(check(Some(INDEX), deep.as_bytes()), Err(ManifestError::Shape));
    }

    proptest! {
        /// Random bytes are never a manifest, and no input causes a panic.
        #[test]
        fn noise_is_no_manifest(content_type in ".{0,60}", body in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(check(Some(&content_type), &body).is_err());
            prop_assert!(check(Some(INDEX), &body).is_err());
        }
    }
}
