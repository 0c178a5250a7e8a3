//! The webhook's HTTP side: method, path, content type, size, deadline, shedding.
//!
//! Owns every limit that protects the process from its callers. What a review means is the pipeline's business.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant as StdInstant;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::Full;
use tokio::time::Instant;

use super::current::{Current, Unanswered};
use super::deadline;
use super::decide::Hook;
use super::load::Load;
use super::pipeline::Metrics;
use super::resolver::DEFECT;
use crate::config;
use service_core::edge::{Peer, discard};
use service_core::share::{Room, Stop};
use service_registry::verdicts::Class;

/// Seconds after which a shed caller may come again.
const RETRY_AFTER_S: &str = "1";

/// The webhook.
pub struct Endpoint {
    current: Arc<Current>,
    metrics: Arc<Metrics>,
    load: Arc<Load>,
    slots_per_peer: usize,
    room: Arc<Room>,
    body_max: usize,
    /// The key that the limit of a body's size is of.
    body_key: &'static str,
}

/// A request that gets no review: status and text.
struct Refusal(StatusCode, String);

impl Endpoint {
    /// A webhook over `current` with the limits of `settings`, whose reviews hold no more than `room`.
    pub fn new(settings: &config::Admission, current: Arc<Current>, room: Arc<Room>) -> Self {
        let (asked, fits) = (settings.max_body_bytes, room.body_max());
        let body_key = if asked <= fits { "admission.maxBodyBytes" } else { "admission.maxHeldBytes" };
        Self {
            metrics: Arc::clone(current.pipeline().metrics()),
            current,
            load: Arc::new(Load::new(settings.max_in_flight)),
            slots_per_peer: settings.max_in_flight_per_peer,
            room,
            body_max: asked.min(fits),
            body_key,
        }
    }

    /// How many reviews are in work.
    pub fn load(&self) -> &Arc<Load> {
        &self.load
    }

    /// Answers one request of `peer`. Never fails: what goes wrong is an HTTP status.
    pub async fn serve<B>(self: Arc<Self>, request: Request<B>, peer: Arc<Peer>) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let started = StdInstant::now();
        let metrics = Arc::clone(&self.metrics);
        metrics.in_flight.inc();
        // A caller that leaves drops this future; the gauge must come down all the same.
        let leave = Leave(&metrics);
        // The last net: whatever panics, the caller gets an answer and its connection stays. Nothing is shared that a panic could
        // leave half-done: locks are held for single steps, and permits come back when they are dropped.
        let answer = AssertUnwindSafe(self.answer(request, &peer)).catch_unwind().await.unwrap_or_else(|_panic| {
            metrics.panics.inc();
            Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, format!("{}: {DEFECT}", Class::Internal)))
        });
        drop(leave);
        metrics.duration.observe(started.elapsed().as_secs_f64());
        let response = answer.unwrap_or_else(|Refusal(status, text)| refusal(status, text));
        metrics.answered(response.status());
        response
    }

    async fn answer<B>(&self, request: Request<B>, peer: &Peer) -> Result<Response<Full<Bytes>>, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let hook = check_head(&request)?;
        let deadline = Instant::now() + deadline::budget(request.uri().query());
        let (Some(place), Some(entered)) = (self.load.enter(), peer.enter(self.slots_per_peer)) else {
            discard(request.into_body()).await;
            return Err(busy());
        };
        let mut held = self.room.hold(peer, self.body_max);
        let mut body = request.into_body();
        let body = match held.read(&mut body, deadline).await {
            Ok(body) => body,
            Err(stop) => {
                if matches!(stop, Stop::TooLarge | Stop::Full | Stop::PeerFull) {
                    // What it holds is wanted by others, and what is read now is not kept.
                    drop((held, entered, place));
                    discard(body).await;
                }
                return Err(self.stopped(stop));
            }
        };
        let mut response = match self.current.review(hook, &body, deadline).await {
            Ok(answer) => Response::new(Full::from(answer)),
            Err(Unanswered::Full) => return Err(busy()),
            Err(Unanswered::Malformed(text)) => return Err(Refusal(StatusCode::BAD_REQUEST, text)),
            // Not a refusal: the review was counted by its outcome.
            Err(Unanswered::Failed(text)) => return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, text)),
        };
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }

    fn stopped(&self, stop: Stop) -> Refusal {
        match stop {
            Stop::TooLarge => {
                let text = format!("the body is larger than {} bytes ({})", self.body_max, self.body_key);
                Refusal(StatusCode::PAYLOAD_TOO_LARGE, text)
            }
            Stop::Full | Stop::PeerFull => busy(),
            Stop::Slow => Refusal(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time".into()),
            Stop::Broken(error) => Refusal(StatusCode::BAD_REQUEST, format!("the body broke off: {error}")),
        }
    }
}

fn busy() -> Refusal {
    Refusal(StatusCode::TOO_MANY_REQUESTS, "too many reviews at one time".into())
}

struct Leave<'a>(&'a Metrics);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}

fn check_head<B>(request: &Request<B>) -> Result<Hook, Refusal> {
    let hook = match request.uri().path() {
        "/mutate" | "/v1/mutate" => Hook::Mutating,
        "/validate" => Hook::Validating,
        _ => {
            let text = "the mutating webhook is at /mutate, the validating one at /validate";
            return Err(Refusal(StatusCode::NOT_FOUND, text.into()));
        }
    };
    if request.method() != Method::POST {
        return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "a review is sent with POST".into()));
    }
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.and_then(|value| value.split(';').next()).map(str::trim);
    if !media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json")) {
        return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a review is application/json".into()));
    }
    Ok(hook)
}

fn refusal(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text + "\n"));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if status == StatusCode::TOO_MANY_REQUESTS {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    response
}
