//! The endpoints that read: manifests, blobs and their ranges, tags, repositories, referrers.
//!
//! Owns the headers in the answers of these endpoints (OCI distribution specification, "Pull", "Content Discovery").

use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH,
    LINK, RANGE,
};
use http::{Response, StatusCode};
use serde_json::json;

use super::body::Body;
use super::digest::Digest;
use super::manifest::OCI_INDEX;
use super::refusal::{Code, Refusal};
use super::route::Reference;
use super::shared::{RequestHead, Shared, json as json_answer};

/// Maximum number of entries in one answer of a list; a client requests further entries with the next page.
const PAGE_MAX: usize = 10_000;
/// Maximum number of referrers in one answer, so that the answer stays below the 4 MiB that the specification allows.
const REFERRERS_MAX: usize = 1_000;

/// The range of a blob that a client requests.
#[derive(Debug, PartialEq, Eq)]
enum ByteRange {
    Whole,
    Bytes(usize, usize),
    Unsatisfiable,
}

pub(super) fn manifest(
    shared: &Shared,
    asked: &RequestHead,
    name: &str,
    reference: &Reference,
) -> Result<Response<Body>, Refusal> {
    let state = shared.state.lock();
    let Some(found) = state.store.manifest(name, reference) else {
        let detail = match reference {
            Reference::Tag(tag) => json!({ "Tag": tag }),
            Reference::Digest(digest) => json!({ "Digest": digest.as_str() }),
        };
        return Err(Refusal::new(Code::ManifestUnknown).detail(detail));
    };
    let mut response = content(asked, &found.digest, found.bytes.clone());
    if let Ok(media_type) = HeaderValue::from_str(&found.media_type) {
        response.headers_mut().insert(CONTENT_TYPE, media_type);
    }
    Ok(response)
}

pub(super) fn blob(
    shared: &Shared,
    asked: &RequestHead,
    name: &str,
    digest: &Digest,
) -> Result<Response<Body>, Refusal> {
    let found = shared.state.lock().store.blob(name, digest);
    let bytes = found.ok_or_else(|| Refusal::new(Code::BlobUnknown).detail(digest.as_str()))?;
    let length = bytes.len();
    let mut response = match part(asked.header(RANGE), length) {
        ByteRange::Whole => content(asked, digest, bytes),
        ByteRange::Bytes(first, last) => {
            let mut response = content(asked, digest, bytes.slice(first..=last));
            if response.status() == StatusCode::OK {
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                insert(response.headers_mut(), CONTENT_RANGE, &format!("bytes {first}-{last}/{length}"));
            }
            response
        }
        ByteRange::Unsatisfiable => {
            return Err(Refusal::new(Code::RangeInvalid).header(CONTENT_RANGE, &format!("bytes */{length}")));
        }
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=31536000"));
    Ok(response)
}

pub(super) fn tags(shared: &Shared, asked: &RequestHead, name: &str) -> Result<Response<Body>, Refusal> {
    let most = page_length(asked)?;
    let page = shared.state.lock().store.tags(name, asked.value("last"), most);
    let page = page.ok_or_else(|| Refusal::new(Code::NameUnknown).detail(json!({ "name": name })))?;
    let mut response = json_answer(json!({ "name": name, "tags": page.items }).to_string());
    if page.more
        && let Some(last) = page.items.last()
    {
        link(&mut response, &format!("/v2/{name}/tags/list?last={last}&n={most}"));
    }
    Ok(response)
}

pub(super) fn catalog(shared: &Shared, asked: &RequestHead) -> Result<Response<Body>, Refusal> {
    let most = page_length(asked)?;
    let page = shared.state.lock().store.repositories(asked.value("last"), most);
    let mut response = json_answer(json!({ "repositories": page.items }).to_string());
    if page.more
        && let Some(last) = page.items.last()
    {
        let last = last.replace('/', "%2F");
        link(&mut response, &format!("/v2/_catalog?last={last}&n={most}"));
    }
    Ok(response)
}

pub(super) fn referrers(
    shared: &Shared,
    asked: &RequestHead,
    name: &str,
    subject: &Digest,
) -> Result<Response<Body>, Refusal> {
    let artifact_type = asked.value("artifactType").filter(|value| !value.is_empty());
    let last = asked.value("last").map(Digest::parse).transpose();
    let last = last.map_err(|error| Refusal::new(Code::DigestInvalid).detail(error.to_string()))?;
    let state = shared.state.lock();
    let page = state.store.referrers(name, subject, artifact_type, last.as_ref(), REFERRERS_MAX);
    let manifests: Vec<_> = page.items.iter().map(|manifest| manifest.descriptor()).collect();
    let index = json!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": manifests });
    let mut response = json_answer(index.to_string());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OCI_INDEX));
    if artifact_type.is_some() {
        let filters = HeaderName::from_static("oci-filters-applied");
        response.headers_mut().insert(filters, HeaderValue::from_static("artifactType"));
    }
    if page.more
        && let Some(last) = page.items.last()
    {
        let filter = artifact_type.map_or_else(String::new, |value| format!("&artifactType={}", escaped(value)));
        link(&mut response, &format!("/v2/{name}/referrers/{subject}?last={}{filter}", last.digest));
    }
    Ok(response)
}

/// Makes the answer with this content and its digest, or 304 if the client has that content already.
fn content(asked: &RequestHead, digest: &Digest, bytes: bytes::Bytes) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    if asked.header(IF_NONE_MATCH).is_some_and(|tags| tags.contains(digest.as_str())) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = Body::full(bytes);
    }
    let headers = response.headers_mut();
    insert(headers, HeaderName::from_static("docker-content-digest"), digest.as_str());
    insert(headers, ETAG, &format!("\"{digest}\""));
    response
}

/// The range of a blob that the header `Range` requests. A header that is invalid or names several ranges is ignored,
/// as RFC 9110, section 14, demands.
fn part(header: Option<&str>, length: usize) -> ByteRange {
    let Some((first, last)) = header.and_then(|text| text.strip_prefix("bytes=")).and_then(|spec| spec.split_once('-'))
    else {
        return ByteRange::Whole;
    };
    match (first.trim(), last.trim()) {
        ("", suffix) => match suffix.parse::<usize>() {
            Err(_) => ByteRange::Whole,
            Ok(0) => ByteRange::Unsatisfiable,
            Ok(_) if length == 0 => ByteRange::Unsatisfiable,
            Ok(suffix) => ByteRange::Bytes(length.saturating_sub(suffix), length - 1),
        },
        (first, last) => {
            let last = if last.is_empty() { Ok(usize::MAX) } else { last.parse::<usize>() };
            match (first.parse::<usize>(), last) {
                (Ok(first), Ok(last)) if first > last => ByteRange::Whole,
                (Ok(first), Ok(_)) if first >= length => ByteRange::Unsatisfiable,
                (Ok(first), Ok(last)) => ByteRange::Bytes(first, last.min(length - 1)),
                _ => ByteRange::Whole,
            }
        }
    }
}

fn page_length(asked: &RequestHead) -> Result<usize, Refusal> {
    let Some(text) = asked.value("n") else { return Ok(PAGE_MAX) };
    let number: usize =
        text.parse().map_err(|_| Refusal::new(Code::PaginationNumberInvalid).detail(json!({ "n": text })))?;
    Ok(number.min(PAGE_MAX))
}

fn link(response: &mut Response<Body>, target: &str) {
    insert(response.headers_mut(), LINK, &format!("<{target}>; rel=\"next\""));
}

fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Inserts a header into an answer; an invalid value, which only a client can cause, is left out.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_follow_rfc_9110() {
        let cases = [
            (None, ByteRange::Whole),
            (Some("bytes=0-0"), ByteRange::Bytes(0, 0)),
            (Some("bytes=2-"), ByteRange::Bytes(2, 9)),
            (Some("bytes=2-99"), ByteRange::Bytes(2, 9)),
            (Some("bytes=-3"), ByteRange::Bytes(7, 9)),
            (Some("bytes=-99"), ByteRange::Bytes(0, 9)),
            (Some("bytes=10-"), ByteRange::Unsatisfiable),
            (Some("bytes=-0"), ByteRange::Unsatisfiable),
            (Some("bytes=5-2"), ByteRange::Whole),
            (Some("bytes=0-1,3-4"), ByteRange::Whole),
            (Some("lines=0-1"), ByteRange::Whole),
        ];
        for (header, expected) in cases {
            assert_eq!(part(header, 10), expected, "{header:?}");
        }
    }

    proptest! {
        /// For any header `Range`, the resulting range lies inside the blob.
        #[test]
        fn a_part_lies_inside(header in "bytes=[0-9]{0,21}-[0-9]{0,21}", length in 0..100_usize) {
            if let ByteRange::Bytes(first, last) = part(Some(&header), length) {
                prop_assert!(first <= last && last < length);
            }
        }
    }
}
