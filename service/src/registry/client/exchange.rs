//! One request for a manifest or a piece of a blob over the wire, with its redirects.
//!
//! Credentials stay with the host they are for.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};

use super::Question;
use crate::registry::hosts::Station;
use crate::registry::manifest::ACCEPT;
use crate::registry::url::{Url, is_path};
use crate::verdicts::{Class, Failure};
use crate::wire;

/// Largest manifest read (OCI distribution specification: registries should accept 4 MiB).
const MANIFEST_BYTES_MAX: usize = 4 << 20;
/// Largest piece of a blob that is asked for at one time.
pub(super) const PIECE_BYTES_MAX: usize = 8 << 20;
/// Redirects followed for one request; more is a loop.
const REDIRECTS_MAX: u32 = 5;

/// Sends the request and follows redirects.
pub(super) async fn redirected(
    question: &Question<'_>,
    method: &Method,
    authorization: Option<&str>,
) -> Result<Response<Bytes>, Failure> {
    let Question { station, repository, tag, blob_from, deadline, .. } = question;
    let host = station.host();
    let bad = |what: &str| Failure::new(Class::Misconfigured, format!("{host} answered a redirect {what}"));
    let (mut client, mut trusted) = (Arc::clone(&station.client), true);
    let kind = if blob_from.is_some() { "blobs" } else { "manifests" };
    let cap_bytes = if blob_from.is_some() { PIECE_BYTES_MAX } else { MANIFEST_BYTES_MAX };
    let mut path = format!("/v2/{repository}/{kind}/{tag}");
    for _ in 0..=REDIRECTS_MAX {
        let mut request = match blob_from {
            None => request(method, &path).header(header::ACCEPT, ACCEPT),
            Some(from) => {
                let last = from.saturating_add(PIECE_BYTES_MAX as u64 - 1);
                request(method, &path).header(header::RANGE, format!("bytes={from}-{last}"))
            }
        };
        if let Some(authorization) = authorization.filter(|_| trusted) {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let response = client.fetch(written(request, Bytes::new())?, cap_bytes, *deadline).await;
        let response = response.map_err(|error| match error {
            wire::Error::Inside { authority } => bad(&format!("to {authority}, which is at an internal address")),
            error => failure(station, &error),
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
        let leg = station.redirect(&url);
        (client, trusted, path) = (leg.client, leg.trusted, url.path);
    }
    Err(Failure::new(Class::Unavailable, format!("{host} answered more than {REDIRECTS_MAX} redirects")))
}

/// A request as this service makes them.
pub(super) fn request(method: &Method, path: &str) -> http::request::Builder {
    let agent = concat!("longhaul-service/", env!("CARGO_PKG_VERSION"));
    Request::builder().method(method).uri(path).header(header::USER_AGENT, agent)
}

pub(super) fn written(request: http::request::Builder, body: Bytes) -> Result<Request<Bytes>, Failure> {
    request.body(body).map_err(|_| Failure::new(Class::Misconfigured, "the request cannot be written as HTTP"))
}

/// What a request without an answer means.
pub(super) fn failure(station: &Station<'_>, error: &wire::Error) -> Failure {
    if error.is_certificate() {
        let key = station.key("caFile");
        return Failure::new(Class::Misconfigured, format!("{error}; check {key}"));
    }
    Failure::new(Class::Unavailable, error.to_string())
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
