//! Single reviews, sent one by one as kube-apiserver sends them.
//!
//! Owns the connections for such reviews, and which answers kube-apiserver would accept. Nothing is planned or measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use go_rules::admission::Verdict;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request};
use serde_json::Value;

use super::load::Target;
use super::{Error, answer};
use crate::failure::Failure;
use crate::seed::{self, UID_LEN};
use crate::wire::{Body, Endpoint, Http1, Progress, Tls};

/// A valid answer to a review.
#[derive(Debug, Clone, PartialEq)]
pub struct Reviewed {
    pub allowed: bool,
    /// The status code of a denial; 0 if the answer has no code.
    pub code: i32,
    pub message: String,
    pub warnings: Vec<String>,
    /// The object after the webhook's patch; `None` without a patch. An error says why the patch cannot be applied.
    pub after: Option<Result<Value, String>>,
}

/// A client of one webhook, whose reviews may be sent side by side.
#[derive(Debug)]
pub struct Asking {
    http: Arc<Http1>,
    authority: HeaderValue,
    path: String,
    /// The number of reviews so far, from which each uid is made.
    sent: AtomicU64,
}

impl Asking {
    /// A client with at most this number of connections.
    ///
    /// # Errors
    ///
    /// Returns an error if the target is not valid.
    pub fn new(target: &Target, connections: usize) -> Result<Self, Error> {
        let identity = target.client_certificate.as_ref();
        let identity = identity.map(|identity| (&*identity.chain_pem, &*identity.key_pem));
        let tls = Tls { alpn: b"http/1.1", resumption: false, identity, pace: target.pace };
        let endpoint = Endpoint::with(&target.url, &target.server_name, &target.ca_pem, tls)?;
        let (authority, path) = (endpoint.authority.to_string(), endpoint.path.to_string());
        let authority = HeaderValue::try_from(authority).map_err(|_| Error::Config {
            key: "url",
            problem: "has characters that no HTTP header may have".to_owned(),
        })?;
        Ok(Self { http: Http1::new(endpoint, connections, connections), authority, path, sent: AtomicU64::new(0) })
    }

    /// Sends a review with a new uid to the webhook at `path`; an empty path is that of the target. An error says why
    /// kube-apiserver would count the call as failed.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no answer within the limit, or if the answer is invalid.
    pub async fn review(
        &self,
        path: &str,
        review: &Value,
        mutating: bool,
        limit: Duration,
    ) -> Result<Reviewed, String> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let uid: [u8; UID_LEN] = seed::uid(&mut seed::stream(number, "asking"));
        let mut review = review.clone();
        review["request"]["uid"] = String::from_utf8_lossy(&uid).into();
        let answer = self.send(path, Bytes::from(review.to_string()), &uid, mutating, limit).await;
        let verdict = answer.map_err(|failure| format!("{}: {}", failure.class.text(), failure.text))?;
        let patch = verdict.patch.filter(|patch| !patch.0.is_empty());
        let after = patch.map(|patch| {
            let mut object = review["request"]["object"].take();
            if object.is_null() {
                return Err("the request has no object that a patch could change".to_owned());
            }
            json_patch::patch(&mut object, &patch.0).map(|()| object).map_err(|error| error.to_string())
        });
        let Verdict { allowed, code, message, warnings, .. } = verdict;
        Ok(Reviewed { allowed, code, message, warnings, after })
    }

    pub(super) async fn send(
        &self,
        path: &str,
        body: Bytes,
        uid: &[u8],
        mutating: bool,
        limit: Duration,
    ) -> Result<Verdict, Failure> {
        let mut request = Request::new(Body::new(body));
        let path = if path.is_empty() { &self.path } else { path };
        *request.method_mut() = Method::POST;
        *request.uri_mut() = format!("{path}?timeout={}s", limit.as_secs())
            .parse()
            .map_err(|error| Failure::invalid(format!("`{path}` is no path: {error}")))?;
        let headers = request.headers_mut();
        headers.insert(HOST, self.authority.clone());
        headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let progress = Progress::default();
        let answer = tokio::time::timeout(limit, self.http.call(request, &progress)).await;
        let answer = answer.unwrap_or_else(|_| Err(progress.timeout(limit)))?;
        answer::check(answer.seen(), uid, mutating)
    }
}
