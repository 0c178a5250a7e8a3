//! Sends a request for a manifest, a blob or a part of a blob, and follows redirects.
//!
//! Credentials are sent only to the host to which they belong.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};

use super::Question;
use crate::hosts::Upstream;
use crate::manifest::ACCEPT;
use crate::url::{Url, is_path};
use crate::verdicts::{Class, Failure};
use crate::wanted::Wanted;
use service_core::wire;

/// Largest manifest, in bytes (OCI distribution specification: registries should accept 4 MiB).
const MANIFEST_BYTES_MAX: usize = 4 << 20;
/// Media type of an answer of the referrers API.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The `Accept` header for blobs, which accepts all media types.
const ANYTHING: &str = "*/*";
/// Largest part of a blob that is requested at once, in bytes.
pub(super) const PART_BYTES_MAX: usize = 8 << 20;
/// Maximum number of redirects of one request; more redirects would be a loop.
const REDIRECTS_MAX: u32 = 5;

/// Sends the request and follows the redirects in its answers.
pub(super) async fn redirected(
    question: &Question<'_>,
    method: &Method,
    authorization: Option<&str>,
) -> Result<Response<Bytes>, Failure> {
    let Question { upstream, repository, wanted, deadline, .. } = question;
    let host = upstream.host();
    let bad = |what: &str| Failure::new(Class::Misconfigured, format!("{host} answered a redirect {what}"));
    let (mut client, mut trusted) = (Arc::clone(&upstream.client), true);
    let (mut path, accept, bytes_max) = match wanted {
        Wanted::Image(name) | Wanted::Manifest(name) => {
            (format!("/v2/{repository}/manifests/{name}"), ACCEPT, MANIFEST_BYTES_MAX)
        }
        Wanted::Referrers(digest) => (format!("/v2/{repository}/referrers/{digest}"), INDEX, MANIFEST_BYTES_MAX),
        Wanted::Blob { digest, bytes_max } => (format!("/v2/{repository}/blobs/{digest}"), ANYTHING, *bytes_max),
        Wanted::Part { digest, .. } => (format!("/v2/{repository}/blobs/{digest}"), ANYTHING, PART_BYTES_MAX),
    };
    upstream.count(*wanted);
    for _ in 0..=REDIRECTS_MAX {
        let mut request = request(method, &path).header(header::ACCEPT, accept);
        if let Wanted::Part { from, .. } = wanted {
            let last = from.saturating_add(PART_BYTES_MAX as u64 - 1);
            request = request.header(header::RANGE, format!("bytes={from}-{last}"));
        }
        if let Some(authorization) = authorization.filter(|_| trusted) {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = written(request, Bytes::new())?;
        let response = match wanted {
            // The caller knows the blob's size, and has memory for it.
            Wanted::Blob { .. } => client.fetch_reserved(request, bytes_max, *deadline).await,
            _ => client.fetch(request, bytes_max, *deadline).await,
        };
        let response = response.map_err(|error| match error {
            // Otherwise an author with write access could choose an uncertain result.
            wire::Error::TooLarge { cap_bytes } if !matches!(wanted, Wanted::Part { .. }) => {
                let what = format!("{host}/{} is larger than {cap_bytes} bytes", wanted.of(repository));
                let class = if matches!(wanted, Wanted::Image(_)) { Class::TooMuchEvidence } else { Class::Invalid };
                Failure::new(class, what)
            }
            wire::Error::Inside { authority } => bad(&format!("to {authority}, which is at an internal address")),
            error => failure(upstream, &error),
        })?;
        let location = response.headers().get(header::LOCATION).filter(|_| is_redirect(response.status()));
        let Some(location) = location else { return Ok(response) };
        let location = location.to_str().map_err(|_| bad("to what is no URL"))?;
        if is_path(location) && !location.starts_with("//") {
            location.clone_into(&mut path);
            continue;
        }
        let url = Url::parse(location).ok_or_else(|| bad("to what is no HTTP URL"))?;
        if url.plain && client.origin().tls.is_some() {
            return Err(bad(&format!("from HTTPS to HTTP at {}", url.authority)));
        }
        let target = upstream.redirect(&url);
        (client, trusted, path) = (target.client, target.trusted, url.path);
    }
    Err(Failure::new(Class::Unavailable, format!("{host} answered more than {REDIRECTS_MAX} redirects")))
}

pub(super) fn request(method: &Method, path: &str) -> http::request::Builder {
    let agent = concat!("longhaul-service/", env!("CARGO_PKG_VERSION"));
    Request::builder().method(method).uri(path).header(header::USER_AGENT, agent)
}

pub(super) fn written(request: http::request::Builder, body: Bytes) -> Result<Request<Bytes>, Failure> {
    request.body(body).map_err(|_| Failure::new(Class::Misconfigured, "the request cannot be written as HTTP"))
}

/// The failure of a request without an answer.
pub(super) fn failure(upstream: &Upstream<'_>, error: &wire::Error) -> Failure {
    if error.is_certificate() {
        let key = upstream.key("caFile");
        return Failure::new(Class::Misconfigured, format!("{error}; check {key}"));
    }
    if let (true, wire::Error::Tls { authority, .. }) = (error.is_no_tls(), error) {
        let remedy = upstream.plain_http_remedy();
        let what = format!("{authority} speaks no TLS, most likely plain HTTP; if that is meant, {remedy}");
        return Failure::new(Class::Misconfigured, what);
    }
    match error {
        wire::Error::Crowded => Failure::new(Class::Busy, error.to_string()),
        wire::Error::Deadline { .. } => Failure::late_here(&error.to_string()),
        _ => Failure::new(Class::Unavailable, error.to_string()),
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
