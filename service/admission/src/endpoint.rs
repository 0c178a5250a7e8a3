//! The HTTP endpoint of the webhook: checks method, path, content type, size, deadline and overload.
//!
//! This module owns every limit that protects the process from the webhook's callers. The pipeline interprets reviews.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts as Head;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use http_body_util::Full;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use super::current::{Current, Unanswered};
use super::deadline;
use super::decide::Hook;
use super::load::{Load, Slot};
use super::metrics::Metrics;
use super::resolver::DEFECT;
use crate::config;
use service_core::edge::{Answer, Broken, Calls, Entered, Peer};
use service_core::share::{BodyMemory, ReviewMemory, Stop};
use service_registry::verdicts::Class;

/// Number of seconds after which a caller may retry when the service is overloaded.
const RETRY_AFTER_S: &str = "1";

pub struct Endpoint {
    current: Arc<Current>,
    metrics: Arc<Metrics>,
    load: Arc<Load>,
    slots_per_peer: usize,
    memory: Arc<ReviewMemory>,
    body_max: usize,
    /// The configuration key to name in the message about a too large body.
    body_key: &'static str,
}

/// The status and text of the answer to a request that is not reviewed.
#[derive(Debug)]
pub struct Refusal(StatusCode, String);

impl Endpoint {
    /// A webhook that uses the pipeline `current` with the limits in `settings`; its reviews use at most `memory`.
    pub fn new(settings: &config::Admission, current: Arc<Current>, memory: Arc<ReviewMemory>) -> Self {
        let (asked, fits) = (settings.max_body_bytes, memory.body_max());
        let body_key = if asked <= fits { "admission.maxBodyBytes" } else { "admission.maxHeldBytes" };
        Self {
            metrics: Arc::clone(current.pipeline().metrics()),
            current,
            load: Arc::new(Load::new(settings.max_in_flight)),
            slots_per_peer: settings.max_in_flight_per_peer,
            memory,
            body_max: asked.min(fits),
            body_key,
        }
    }

    /// The limit of reviews at one time, and their present number.
    pub fn load(&self) -> &Arc<Load> {
        &self.load
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

impl Calls for Endpoint {
    type Call = Arc<Peer>;
    type Permit<'a> = (Slot<'a>, Entered<'a>);
    type Target<'a> = Hook;
    type Body<'a> = (Bytes, BodyMemory<'a>);
    type Refusal = Refusal;

    fn in_flight(&self) -> &Gauge {
        &self.metrics.in_flight
    }

    fn call(&self, _: &Head, peer: Arc<Peer>) -> Arc<Peer> {
        peer
    }

    fn budget(&self, head: &Head) -> Duration {
        deadline::budget(head.uri.query())
    }

    fn target(&self, _: &mut Arc<Peer>, head: &Head) -> Result<Hook, Refusal> {
        check_head(head)
    }

    fn enter<'a>(&'a self, peer: &'a Arc<Peer>) -> Result<Self::Permit<'a>, Refusal> {
        self.load.enter().zip(peer.enter(self.slots_per_peer)).ok_or_else(busy)
    }

    async fn read<'a, B: Body<Data = Bytes, Error: Broken> + Send + Unpin>(
        &'a self,
        peer: &'a Self::Call,
        _: (&Self::Target<'_>, &Head),
        body: &mut B,
        deadline: Instant,
    ) -> Result<Self::Body<'a>, Refusal> {
        let mut held = self.memory.hold(peer, self.body_max);
        let body = held.read(body, deadline).await.map_err(|stop| self.stopped(stop))?;
        Ok((body, held))
    }

    async fn answer(
        &self,
        _: &Self::Call,
        (hook, _): (Self::Target<'_>, &Head),
        (body, _held): Self::Body<'_>,
        deadline: Instant,
    ) -> Result<Answer, Refusal> {
        let mut response = match self.current.review(hook, &body, deadline).await {
            Ok(answer) => Response::new(Full::from(answer)),
            Err(Unanswered::Full) => return Err(busy()),
            Err(Unanswered::Malformed(text)) => return Err(Refusal(StatusCode::BAD_REQUEST, text)),
            // This is no refusal: the review was counted by its outcome.
            Err(Unanswered::Failed(text)) => return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, text)),
        };
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }

    fn panicked(&self, _: &Arc<Peer>) -> Refusal {
        self.metrics.panics.inc();
        Refusal(StatusCode::INTERNAL_SERVER_ERROR, format!("{}: {DEFECT}", Class::Internal))
    }

    fn status(refusal: &Refusal) -> StatusCode {
        refusal.0
    }

    fn ended(&self, _: Arc<Peer>, result: Result<Answer, Refusal>, took: Duration) -> Answer {
        self.metrics.duration.observe(took.as_secs_f64());
        let answer = result.unwrap_or_else(|Refusal(status, text)| refusal(status, text));
        self.metrics.answered(answer.status());
        answer
    }
}

fn check_head(head: &Head) -> Result<Hook, Refusal> {
    let hook = match head.uri.path() {
        "/mutate" | "/v1/mutate" => Hook::Mutating,
        "/validate" => Hook::Validating,
        _ => {
            let text = "the mutating webhook is at /mutate, the validating one at /validate";
            return Err(Refusal(StatusCode::NOT_FOUND, text.into()));
        }
    };
    if head.method != Method::POST {
        return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "a review is sent with POST".into()));
    }
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.and_then(|value| value.split(';').next()).map(str::trim);
    if !media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json")) {
        return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a review is application/json".into()));
    }
    Ok(hook)
}

fn refusal(status: StatusCode, text: String) -> Answer {
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
