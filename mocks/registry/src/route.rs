//! The parser from a method and a path to an endpoint, without any state.
//!
//! Owns the URL grammar of the OCI distribution specification (spec.md, "Endpoints") and the spelling of repository
//! names, tags and references. A repository name may itself contain `blobs` or `manifests`, so a path is read from its
//! end.

use http::Method;

use super::digest::Digest;
use super::refusal::{Code, Refusal};

/// Maximum length of host name plus repository name in bytes. The specification allows a limit, and clients assume 255.
const NAME_BYTES_MAX: usize = 255;
/// Longest tag: 128 characters (spec.md).
const TAG_BYTES_MAX: usize = 128;

/// The endpoint that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Ping,
    Token,
    Catalog,
    Tags(String),
    Manifest(String, Reference),
    Blob(String, Digest),
    Uploads(String),
    Upload(String, String),
    Referrers(String, Digest),
}

/// A tag or a digest of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    Tag(String),
    Digest(Digest),
}

/// The kind of a request, by which counters, the log and faults distinguish requests.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `GET /v2/`: the check of the API version.
    Ping,
    /// A token from the authorization service.
    Token,
    ManifestHead,
    ManifestGet,
    ManifestPut,
    /// Deletion of a manifest or a tag.
    ManifestDelete,
    BlobHead,
    /// `GET` of a blob, whole or a range.
    BlobGet,
    BlobDelete,
    /// Start of an upload, push of a whole blob in one request, or mount of a blob.
    UploadStart,
    UploadChunk,
    UploadFinish,
    /// A request for the offset of an upload.
    UploadStatus,
    UploadCancel,
    /// The list of a repository's tags.
    Tags,
    /// The list of a manifest's referrers.
    Referrers,
    /// The list of repositories.
    Catalog,
    /// A request to a path that is no endpoint.
    Other,
}

impl Kind {
    /// Whether the answer to a request of this kind has no body, because its method is `HEAD`.
    pub(super) fn is_head(self) -> bool {
        matches!(self, Self::ManifestHead | Self::BlobHead)
    }
}

impl Route {
    /// Parses a path; a path that is no endpoint gives "not found".
    pub(super) fn parse(path: &str) -> Result<Self, Refusal> {
        if path == "/token" {
            return Ok(Self::Token);
        }
        let not_found = || Refusal::new(Code::Unsupported).status(http::StatusCode::NOT_FOUND);
        let rest = match path {
            "/v2" | "/v2/" => return Ok(Self::Ping),
            "/v2/_catalog" => return Ok(Self::Catalog),
            _ => path.strip_prefix("/v2/").ok_or_else(not_found)?,
        };
        let segments: Vec<&str> = rest.split('/').collect();
        match *segments.as_slice() {
            [ref name @ .., "blobs", "uploads"] | [ref name @ .., "blobs", "uploads", ""] => {
                Ok(Self::Uploads(checked_name(name)?))
            }
            [ref name @ .., "blobs", "uploads", id] => Ok(Self::Upload(checked_name(name)?, id.to_owned())),
            [ref name @ .., "blobs", digest] => Ok(Self::Blob(checked_name(name)?, checked_digest(digest)?)),
            [ref name @ .., "manifests", reference] => {
                let name = checked_name(name)?;
                Ok(Self::Manifest(name, Reference::parse(reference)?))
            }
            [ref name @ .., "tags", "list"] => Ok(Self::Tags(checked_name(name)?)),
            [ref name @ .., "referrers", digest] => Ok(Self::Referrers(checked_name(name)?, checked_digest(digest)?)),
            _ => Err(not_found()),
        }
    }

    /// The kind of a request with this method; `Err` lists the methods that the endpoint allows.
    pub(super) fn kind(&self, method: &Method) -> Result<Kind, &'static str> {
        let (kind, allowed) = match (self, method.as_str()) {
            (Self::Ping, "GET" | "HEAD") => (Kind::Ping, ""),
            (Self::Ping, _) => (Kind::Other, "GET, HEAD"),
            (Self::Token, "GET" | "POST") => (Kind::Token, ""),
            (Self::Token, _) => (Kind::Other, "GET, POST"),
            (Self::Catalog, "GET") => (Kind::Catalog, ""),
            (Self::Tags(_), "GET") => (Kind::Tags, ""),
            (Self::Referrers(..), "GET") => (Kind::Referrers, ""),
            (Self::Catalog | Self::Tags(_) | Self::Referrers(..), _) => (Kind::Other, "GET"),
            (Self::Manifest(..), "GET") => (Kind::ManifestGet, ""),
            (Self::Manifest(..), "HEAD") => (Kind::ManifestHead, ""),
            (Self::Manifest(..), "PUT") => (Kind::ManifestPut, ""),
            (Self::Manifest(..), "DELETE") => (Kind::ManifestDelete, ""),
            (Self::Manifest(..), _) => (Kind::Other, "DELETE, GET, HEAD, PUT"),
            (Self::Blob(..), "GET") => (Kind::BlobGet, ""),
            (Self::Blob(..), "HEAD") => (Kind::BlobHead, ""),
            (Self::Blob(..), "DELETE") => (Kind::BlobDelete, ""),
            (Self::Blob(..), _) => (Kind::Other, "DELETE, GET, HEAD"),
            (Self::Uploads(_), "POST") => (Kind::UploadStart, ""),
            (Self::Uploads(_), _) => (Kind::Other, "POST"),
            (Self::Upload(..), "PATCH") => (Kind::UploadChunk, ""),
            (Self::Upload(..), "PUT") => (Kind::UploadFinish, ""),
            (Self::Upload(..), "GET" | "HEAD") => (Kind::UploadStatus, ""),
            (Self::Upload(..), "DELETE") => (Kind::UploadCancel, ""),
            (Self::Upload(..), _) => (Kind::Other, "DELETE, GET, HEAD, PATCH, PUT"),
        };
        if allowed.is_empty() { Ok(kind) } else { Err(allowed) }
    }

    pub(super) fn repository(&self) -> Option<&str> {
        match self {
            Self::Ping | Self::Token | Self::Catalog => None,
            Self::Tags(name)
            | Self::Manifest(name, _)
            | Self::Blob(name, _)
            | Self::Uploads(name)
            | Self::Upload(name, _)
            | Self::Referrers(name, _) => Some(name),
        }
    }
}

impl Reference {
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        if text.contains(':') {
            return checked_digest(text).map(Self::Digest);
        }
        if is_tag(text) {
            Ok(Self::Tag(text.to_owned()))
        } else {
            Err(Refusal::new(Code::NameInvalid).detail(cut(text)))
        }
    }
}

/// Whether a text is a tag: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`
pub(super) fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= TAG_BYTES_MAX
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

/// Whether a text is a repository name: `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(\/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*`
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX && text.split('/').all(is_name_part)
}

fn is_name_part(part: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let inside = part.starts_with(alphanumeric) && part.ends_with(alphanumeric);
    inside
        && part
            .split(alphanumeric)
            .all(|separator| matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-'))
}

fn checked_name(segments: &[&str]) -> Result<String, Refusal> {
    let name = segments.join("/");
    if is_name(&name) { Ok(name) } else { Err(Refusal::new(Code::NameInvalid).detail(cut(&name))) }
}

fn checked_digest(text: &str) -> Result<Digest, Refusal> {
    Digest::parse(text).map_err(|error| Refusal::new(Code::DigestInvalid).detail(error.to_string()))
}

/// Cuts a client's text to a length that fits the message of an answer.
fn cut(text: &str) -> String {
    text.chars().take(NAME_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_read_from_their_end() {
        let digest = Digest::sha256(b"");
        let cases = [
            ("/v2/", Route::Ping),
            ("/v2/_catalog", Route::Catalog),
            ("/v2/a/tags/list", Route::Tags("a".into())),
            ("/v2/a/blobs/manifests/v1", Route::Manifest("a/blobs".into(), Reference::Tag("v1".into()))),
            ("/v2/a/b/blobs/uploads/", Route::Uploads("a/b".into())),
            ("/v2/a/b/blobs/uploads/42", Route::Upload("a/b".into(), "42".into())),
            (&format!("/v2/uploads/blobs/{digest}"), Route::Blob("uploads".into(), digest.clone())),
            (&format!("/v2/a/referrers/{digest}"), Route::Referrers("a".into(), digest.clone())),
        ];
        for (path, route) in cases {
            assert_eq!(Route::parse(path).unwrap(), route, "{path}");
        }
    }

    #[test]
    fn names_and_tags_follow_the_grammar() {
        for good in ["a", "a/b", "a.b_c__d-e---f/0", "library/nginx"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "A", "a//b", "/a", "a/", "-a", "a-", "a..b", "a___b", "a._b", "a b", "ä"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(!is_name(&"a".repeat(256)));
        assert!(is_tag("v1.0_x-Y") && is_tag("_") && is_tag(&"a".repeat(128)));
        assert!(!is_tag("") && !is_tag(".a") && !is_tag("-a") && !is_tag("a:b") && !is_tag(&"a".repeat(129)));
    }

    proptest! {
        /// Any path gives a route or a refusal. The name in a route always fits the grammar.
        #[test]
        fn any_path_is_answered(path in "(/v2)?(/[a-zA-Z0-9._:-]{0,12}|/blobs|/uploads|/manifests|/tags|/list|/\\PC{0,4}){0,6}") {
            if let Ok(route) = Route::parse(&path) {
                prop_assert!(route.repository().is_none_or(is_name));
            }
        }
    }
}
