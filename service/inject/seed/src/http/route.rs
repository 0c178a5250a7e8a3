//! The routes of the registry (OCI distribution specification 1.1).
//!
//! Paths are not percent-decoded, because no served name needs an escape; a path with an escape matches no route.

use crate::catalog::is_repository;
use crate::digest::Digest;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route<'p> {
    /// The path `/v2/`, by which clients check that the server is a registry.
    Base,
    Tag(&'p str, &'p str),
    Manifest(&'p str, Digest),
    Blob(&'p str, Digest),
    Tags(&'p str),
    Referrers(&'p str, Digest),
    /// The digest in the path is invalid, or its algorithm is not served.
    BadDigest,
    /// No repository can have this name.
    BadName,
    /// No resource has this path.
    Nothing,
}

pub fn route(path: &str) -> Route<'_> {
    let Some(rest) = path.strip_prefix("/v2") else { return Route::Nothing };
    if rest.is_empty() || rest == "/" {
        return Route::Base;
    }
    let Some(rest) = rest.strip_prefix('/') else { return Route::Nothing };
    let Some((rest, last)) = rest.rsplit_once('/') else { return Route::Nothing };
    // A repository may itself be called `manifests`: only the last two parts of a path are not its name.
    let Some((name, kind)) = rest.rsplit_once('/') else { return Route::Nothing };
    if !matches!((kind, last), ("manifests" | "blobs" | "referrers", _) | ("tags", "list")) {
        return Route::Nothing;
    }
    if !is_repository(name) {
        return Route::BadName;
    }
    let digest = Digest::from_oci(last);
    match kind {
        "tags" => Route::Tags(name),
        "blobs" => digest.map_or(Route::BadDigest, |digest| Route::Blob(name, digest)),
        "referrers" => digest.map_or(Route::BadDigest, |digest| Route::Referrers(name, digest)),
        // A colon is in no tag.
        _ if last.contains(':') => digest.map_or(Route::BadDigest, |digest| Route::Manifest(name, digest)),
        _ => Route::Tag(name, last),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths() {
        let digest = Digest::of(b"x");
        let by = |kind: &str, reference: &str| format!("/v2/library/a/{kind}/{reference}");
        assert_eq!(route("/v2"), Route::Base);
        assert_eq!(route("/v2/"), Route::Base);
        assert_eq!(route(&by("manifests", "1.25")), Route::Tag("library/a", "1.25"));
        assert_eq!(route(&by("manifests", &format!("sha256:{digest}"))), Route::Manifest("library/a", digest));
        assert_eq!(route(&by("blobs", &format!("sha256:{digest}"))), Route::Blob("library/a", digest));
        assert_eq!(route(&by("referrers", &format!("sha256:{digest}"))), Route::Referrers("library/a", digest));
        assert_eq!(route(&by("tags", "list")), Route::Tags("library/a"));
        assert_eq!(route("/v2/manifests/tags/list"), Route::Tags("manifests"));
        for path in [
            "/",
            "/v1/",
            "/v22/",
            "/v2/_catalog",
            "/v2/a/tags",
            "/v2/a/tags/all",
            "/v2//",
            "/v2/a/uploads/x",
            "/metrics",
        ] {
            assert_eq!(route(path), Route::Nothing, "{path}");
        }
        for name in ["..", "../..", "a/../b", "A", "a//b", "%61", "a%2fb", "a/.."] {
            assert_eq!(route(&format!("/v2/{name}/tags/list")), Route::BadName, "{name}");
        }
        for reference in [
            "sha256:x",
            "sha256:",
            "sha512:aa",
            "latest",
            "",
            &format!("sha256:{}", digest.to_string().to_uppercase()),
            &format!("sha256:{digest}0"),
            "sha256:..%2f..%2fetc%2fpasswd",
        ] {
            assert_eq!(route(&by("blobs", reference)), Route::BadDigest, "{reference}");
        }
        assert_eq!(route(&format!("/v2/a/blobs/sha256:../../../{digest}")), Route::Nothing);
    }

    proptest! {
        /// No parsed name contains `..`, and no path causes a panic.
        #[test]
        fn noise(path in "/v2/[a-z./%A-Z0-9:]{0,60}") {
            match route(&path) {
                Route::Tag(name, _) | Route::Manifest(name, _) | Route::Blob(name, _) | Route::Tags(name) | Route::Referrers(name, _) => {
                    prop_assert!(!name.split('/').any(|part| part.is_empty() || part.starts_with('.')));
                }
                _ => {}
            }
        }
    }
}
