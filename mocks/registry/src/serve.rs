//! The handling of one request, in this order: route, faults, rate limit, authentication, endpoint, log.
//!
//! The modules `pull` and `push` handle the endpoints. This module knows no sockets.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;

use super::auth::{Scope, TokenRequest};
use super::body::Body;
use super::faults::{After, Applied, Ask, Before, Injection};
use super::refusal::{Code, Refusal};
use super::requests;
use super::route::{Kind, Reference, Route};
use super::shared::{RequestHead, Shared, collect, json};
use super::{pull, push};

/// Longest time that a fault leaves a request without an answer; longer than the timeout of every client.
const HANG_MAX: Duration = Duration::from_mins(10);
/// Maximum size of the form in a token request, in bytes; credentials and scopes are small.
const TOKEN_FORM_BYTES_MAX: usize = 16 << 10;

/// The kind of client at a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// Any client: faults, limits and authentication apply, and its requests are counted.
    Subject,
    /// The harness itself, which checks whether the registry is healthy.
    Harness,
}

/// The error with which a request ends without an answer: hyper closes the connection, or resets the stream.
#[derive(Debug, thiserror::Error)]
#[error("the request was left without an answer by a fault")]
pub(super) struct Unanswered;

pub(super) async fn answer(
    shared: Arc<Shared>,
    caller: Caller,
    request: Request<Incoming>,
) -> Result<Response<Body>, Unanswered> {
    let at = shared.now();
    let (parts, body) = request.into_parts();
    let query = pairs(parts.uri.query().unwrap_or_default());
    let asked = RequestHead { parts, query };
    let path = percent_decode_str(asked.parts.uri.path()).decode_utf8_lossy().into_owned();
    let mut entry = requests::Request {
        at_us: micros(at),
        took_us: 0,
        kind: Kind::Other,
        method: asked.parts.method.to_string(),
        path: asked.parts.uri.path_and_query().map_or_else(|| path.clone(), ToString::to_string),
        status: 0,
        user: None,
        user_agent: asked.header(USER_AGENT).unwrap_or_default().to_owned(),
        fault: None,
    };
    let routed = Route::parse(&path).and_then(|route| match route.kind(&asked.parts.method) {
        Ok(kind) => Ok((route, kind)),
        Err(allow) => Err(Refusal::new(Code::Unsupported).header(http::header::ALLOW, allow)),
    });
    let outcome = match routed {
        Err(refusal) => Ok(refusal.into_response()),
        Ok((route, kind)) => {
            entry.kind = kind;
            let (location, agent) = (entry.path.clone(), entry.user_agent.clone());
            let ask = Ask { kind, route: &route, path: &location, user_agent: &agent };
            if let (Route::Manifest(name, Reference::Tag(tag)), Kind::ManifestGet | Kind::ManifestHead) = (&route, kind)
                && caller == Caller::Subject
            {
                shared.log.lock().tag(name, tag);
            }
            if caller == Caller::Harness {
                Ok(work(&shared, &asked, &ask, body).await.unwrap_or_else(Refusal::into_response))
            } else {
                step_through(&shared, &asked, &ask, body, &mut entry).await
            }
        }
    };
    let outcome = outcome.map(|response| finish(&asked.parts.method, response));
    entry.took_us = micros(shared.now().saturating_sub(at));
    entry.status = outcome.as_ref().map_or(0, |response| response.status().as_u16());
    let sent_bytes = outcome.as_ref().map_or(0, |response| response.body().sent_bytes());
    if caller == Caller::Subject {
        shared.log.lock().push(entry, sent_bytes);
    }
    outcome
}

async fn step_through(
    shared: &Shared,
    asked: &RequestHead,
    ask: &Ask<'_>,
    body: Incoming,
    entry: &mut requests::Request,
) -> Result<Response<Body>, Unanswered> {
    let mut injection = shared.faults.injection(ask);
    if let Some(applied) = &mut injection.applied {
        entry.fault = Some(applied.name.as_str().to_owned());
        if let Some(outcome) = act(shared, asked, ask, applied).await {
            return outcome;
        }
    }
    let mut response = match admit(shared, asked, ask) {
        Err(refusal) => refusal.into_response(),
        Ok(user) => {
            entry.user = user;
            work(shared, asked, ask, body).await.unwrap_or_else(Refusal::into_response)
        }
    };
    change(shared, ask, &injection, entry, &mut response)?;
    Ok(response)
}

/// Lets faults change the registry's own answer.
fn change(
    shared: &Shared,
    ask: &Ask<'_>,
    injection: &Injection,
    entry: &mut requests::Request,
    response: &mut Response<Body>,
) -> Result<(), Unanswered> {
    let Some((name, after)) = shared.faults.after(ask, injection, response) else { return Ok(()) };
    if let After::MoveTag = after {
        if let Route::Manifest(repository, Reference::Tag(tag)) = ask.route {
            // Only a manifest that is no JSON object cannot be moved; it stays, and is no hit.
            let _ = shared.move_tag(repository, tag);
        }
        return Ok(());
    }
    entry.fault = Some(name.as_str().to_owned());
    match after {
        After::Changed | After::MoveTag => Ok(()),
        After::Unsent => Err(Unanswered),
    }
}

/// Applies the effect of a fault before a request is handled; `None` means that the registry answers normally.
async fn act(
    shared: &Shared,
    asked: &RequestHead,
    ask: &Ask<'_>,
    applied: &mut Applied,
) -> Option<Result<Response<Body>, Unanswered>> {
    let action = std::mem::replace(&mut applied.action, Before::Hang);
    match action {
        Before::Answer(response) => Some(Ok(response)),
        Before::Refuse(refusal) => Some(Ok(refusal.into_response())),
        Before::Challenge => {
            let needed = Scope::needed(ask.kind, ask.route.repository());
            let refusal = shared.authenticator.challenge(&asked.parts.headers, shared.secure, needed.as_ref(), None);
            Some(Ok(refusal.into_response()))
        }
        Before::Hang => {
            // Whether the fault or the longest time ended, there is no answer.
            let _ = tokio::time::timeout(HANG_MAX, applied.over.cancelled()).await;
            Some(Err(Unanswered))
        }
        Before::Wait(delay) => {
            tokio::time::sleep(delay).await;
            None
        }
        Before::Pass => None,
    }
}

/// Checks the rate limit and the authentication; returns the user.
fn admit(shared: &Shared, asked: &RequestHead, ask: &Ask<'_>) -> Result<Option<String>, Refusal> {
    if let Err(wait) = shared.bucket.lock().take(shared.now()) {
        let seconds = wait.as_millis().div_ceil(1000).max(1);
        return Err(Refusal::new(Code::TooManyRequests).header(RETRY_AFTER, &seconds.to_string()));
    }
    if ask.kind == Kind::Token {
        return Ok(None);
    }
    let needed = Scope::needed(ask.kind, ask.route.repository());
    shared.authenticator.check(&asked.parts.headers, shared.secure, needed.as_ref(), shared.now())
}

async fn work(shared: &Shared, asked: &RequestHead, ask: &Ask<'_>, body: Incoming) -> Result<Response<Body>, Refusal> {
    match ask.route {
        Route::Ping => Ok(json(b"{}".as_slice())),
        Route::Token => token(shared, asked, body).await,
        Route::Catalog => pull::catalog(shared, asked),
        Route::Tags(name) => pull::tags(shared, asked, name),
        Route::Referrers(name, subject) => pull::referrers(shared, asked, name, subject),
        Route::Manifest(name, reference) => match ask.kind {
            Kind::ManifestPut => push::manifest(shared, asked, name, reference, body).await,
            Kind::ManifestDelete => push::delete_manifest(shared, name, reference),
            _ => pull::manifest(shared, asked, name, reference),
        },
        Route::Blob(name, digest) => match ask.kind {
            Kind::BlobDelete => push::delete_blob(shared, name, digest),
            _ => pull::blob(shared, asked, name, digest),
        },
        Route::Uploads(name) => push::start(shared, asked, name, body).await,
        Route::Upload(name, id) => match ask.kind {
            Kind::UploadChunk => push::chunk(shared, asked, name, id, body).await,
            Kind::UploadFinish => push::finish(shared, asked, name, id, body).await,
            Kind::UploadCancel => push::cancel(shared, name, id),
            _ => push::status(shared, name, id),
        },
    }
}

async fn token(shared: &Shared, asked: &RequestHead, body: Incoming) -> Result<Response<Body>, Refusal> {
    let request = if asked.parts.method == Method::POST {
        let form = collect(shared, body, TOKEN_FORM_BYTES_MAX).await?;
        TokenRequest::read(&asked.parts.headers, &pairs(&String::from_utf8_lossy(&form.bytes)))
    } else {
        TokenRequest::read(&asked.parts.headers, &asked.query)
    };
    let answer = shared.authenticator.token(&request, shared.now())?;
    Ok(json(answer.to_string()))
}

/// Adds the headers that every answer has. The answer to `HEAD` has a `Content-Length` but no body.
fn finish(method: &Method, mut response: Response<Body>) -> Response<Body> {
    let version = HeaderName::from_static("docker-distribution-api-version");
    response.headers_mut().insert(version, HeaderValue::from_static("registry/2.0"));
    let status = response.status();
    if status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return response.map(|_| Body::empty());
    }
    if method == Method::HEAD {
        let promised = response.body().promised();
        response.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| promised.into());
        return response.map(|_| Body::empty());
    }
    response
}

/// The key-value pairs of a query or a form (`application/x-www-form-urlencoded`).
fn pairs(text: &str) -> Vec<(String, String)> {
    let decode = |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
    let split =
        |pair: &str| pair.split_once('=').map_or((decode(pair), String::new()), |(k, v)| (decode(k), decode(v)));
    text.split('&').filter(|pair| !pair.is_empty()).map(split).collect()
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
