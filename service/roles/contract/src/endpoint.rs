//! The steps of a call from another process, from its head to its answer: path, method, size, deadline, overload, and
//! the log line about a refusal.
//!
//! This module implements the steps for all roles that other processes call; `service_core::edge::serve` runs the steps
//! in order. Each role implements [`Endpoint`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts as Head;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use http_body_util::Full;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use serde::Serialize;
use service_core::edge::{Answer, Broken, Calls, Peer};
use service_core::logs::Throttle;
use service_core::share::{BodyMemory, ReviewMemory, Stop};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// Maximum of the time that is reserved for sending the answer; the reserved time is a twentieth of the caller's time.
const MARGIN_MAX: Duration = Duration::from_millis(100);
/// Histogram edges in seconds from the head of a call to its answer: from a cached verdict to a registry that hangs.
const DURATION_EDGES_S: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];
/// Maximum number of bytes of a refusal's reason in a log line.
const REASON_BYTES_MAX: usize = 256;

/// An HTTP path that the role serves, and its method.
#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
}

/// An answer to a call other than success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub text: String,
}

impl Refusal {
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }
}

/// The answers of a role to other processes.
pub trait Endpoint: Send + Sync + 'static {
    /// The name of the role and of its configuration section.
    fn name(&self) -> &'static str;

    /// The name of the health check of the role's listener.
    fn listener(&self) -> &'static str;

    fn routes(&self) -> &'static [Route];

    /// The JSON answer to a call of the route with the index `route`, by `deadline`.
    fn answer(&self, route: usize, body: Bytes, deadline: Instant) -> BoxFuture<'_, Result<Bytes, Refusal>>;
}

/// The limits of the calls of a role.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub in_flight: usize,
    pub body_bytes: usize,
    pub memory: Arc<ReviewMemory>,
    pub time: Duration,
}

/// The calls of a role, with the limits and metrics of the role.
pub struct Internal<D> {
    endpoint: D,
    places: Semaphore,
    body_max: usize,
    memory: Arc<ReviewMemory>,
    timeout: Duration,
    in_flight: Gauge,
    requests: Family<Code, Counter>,
    duration: Histogram,
    throttle: Throttle,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: u16,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
}

impl<D: Endpoint> Internal<D> {
    pub fn new(bounds: Bounds, endpoint: D, registry: &mut Registry) -> Self {
        let sub = registry.sub_registry_with_prefix(format!("longhaul_{}", endpoint.name()));
        let (in_flight, requests) = (Gauge::default(), Family::default());
        let duration = Histogram::new(DURATION_EDGES_S);
        sub.register("in_flight", "Calls of other processes in work", in_flight.clone());
        sub.register("http_requests", "Calls of other processes, by HTTP status", requests.clone());
        sub.register("duration_seconds", "Time from call to answer", duration.clone());
        let places = Semaphore::new(bounds.in_flight);
        let (body_max, memory, timeout) = (bounds.body_bytes, bounds.memory, bounds.time);
        let throttle = Throttle::default();
        Self { endpoint, places, body_max, memory, timeout, in_flight, requests, duration, throttle }
    }

    fn stopped(&self, stop: &Stop) -> Refusal {
        match stop {
            Stop::TooLarge => {
                let text =
                    format!("a body has at most {} bytes ({}.maxBodyBytes)", self.body_max, self.endpoint.name());
                Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
            }
            Stop::Full | Stop::PeerFull => busy(),
            Stop::Slow => Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
            Stop::Broken(_) => Refusal::bad("the body broke off"),
        }
    }

    fn refused(&self, peer: &Peer, refusal: &Refusal) {
        let Some(left_out) = self.throttle.admit() else { return };
        let (listener, status) = (self.endpoint.name(), refusal.status.as_u16());
        let reason: String = refusal.text.chars().filter(|char| !char.is_control()).take(REASON_BYTES_MAX).collect();
        tracing::warn!(
            name: crate::events::INTERNAL_REFUSED,
            listener, peer = peer.name().unwrap_or_default(), address = %peer.address(), status, reason, left_out,
            "a call of another process was refused"
        );
    }
}

fn busy() -> Refusal {
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too many calls at one time")
}

impl<D: Endpoint> Calls for Internal<D> {
    type Call = Arc<Peer>;
    type Permit<'a> = SemaphorePermit<'a>;
    type Target<'a> = usize;
    type Body<'a> = (Bytes, BodyMemory<'a>);
    type Refusal = Refusal;

    fn in_flight(&self) -> &Gauge {
        &self.in_flight
    }

    fn call(&self, _: &Head, peer: Arc<Peer>) -> Arc<Peer> {
        peer
    }

    fn budget(&self, head: &Head) -> Duration {
        let asked = asked_for(head.uri.query().unwrap_or_default()).unwrap_or(self.timeout).min(self.timeout);
        asked.saturating_sub((asked / 20).min(MARGIN_MAX))
    }

    fn target(&self, _: &mut Arc<Peer>, head: &Head) -> Result<usize, Refusal> {
        let routes = self.endpoint.routes();
        let here = |route: &&Route| route.path == head.uri.path();
        if !routes.iter().any(|route| here(&route)) {
            let paths: Vec<_> = routes.iter().map(|route| route.path).collect();
            return Err(Refusal::new(StatusCode::NOT_FOUND, format!("there is {}", paths.join(", "))));
        }
        let Some(index) = routes.iter().position(|route| here(&route) && route.method == head.method) else {
            let methods: Vec<_> = routes.iter().filter(here).map(|route| route.method.as_str()).collect();
            return Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("this path takes {}", methods.join(", ")),
            ));
        };
        if head.method == Method::POST {
            let media_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let media_type = media_type.and_then(|value| value.split(';').next()).map(str::trim);
            // Gatekeeper's client sends no content type.
            if media_type.is_some_and(|media_type| !media_type.eq_ignore_ascii_case("application/json")) {
                return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a body is application/json"));
            }
        }
        Ok(index)
    }

    fn enter<'a>(&'a self, _: &'a Arc<Peer>) -> Result<SemaphorePermit<'a>, Refusal> {
        self.places.try_acquire().map_err(|_| busy())
    }

    async fn read<'a, B: Body<Data = Bytes, Error: Broken> + Send + Unpin>(
        &'a self,
        peer: &'a Self::Call,
        _: (&Self::Target<'_>, &Head),
        body: &mut B,
        deadline: Instant,
    ) -> Result<Self::Body<'a>, Refusal> {
        let mut held = self.memory.hold(peer, self.body_max);
        let body = held.read(body, deadline).await.map_err(|stop| self.stopped(&stop))?;
        Ok((body, held))
    }

    async fn answer(
        &self,
        _: &Self::Call,
        (route, _): (Self::Target<'_>, &Head),
        (body, _held): Self::Body<'_>,
        deadline: Instant,
    ) -> Result<Answer, Refusal> {
        Ok(json(StatusCode::OK, self.endpoint.answer(route, body, deadline).await?))
    }

    fn panicked(&self, _: &Arc<Peer>) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "a defect of this program: see its log")
    }

    fn status(refusal: &Refusal) -> StatusCode {
        refusal.status
    }

    fn ended(&self, peer: Arc<Peer>, result: Result<Answer, Refusal>, took: Duration) -> Answer {
        self.duration.observe(took.as_secs_f64());
        let answer = result.unwrap_or_else(|refusal| {
            self.refused(&peer, &refusal);
            let body = serde_json::to_vec(&ErrorBody { error: &refusal.text }).unwrap_or_default();
            let mut answer = json(refusal.status, body.into());
            if refusal.status == StatusCode::TOO_MANY_REQUESTS {
                answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            answer
        });
        self.requests.get_or_create(&Code { code: answer.status().as_u16() }).inc();
        answer
    }
}

/// The caller's remaining time; `None` if the query does not state it.
fn asked_for(query: &str) -> Option<Duration> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("timeoutMs="))?;
    value.parse().ok().filter(|ms| *ms > 0).map(Duration::from_millis)
}

fn json(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_says_how_long_it_waits() {
        for (query, left_ms) in [
            ("timeoutMs=250", Some(250)),
            ("a=b&timeoutMs=1", Some(1)),
            ("timeoutMs=0", None),
            ("timeoutMs=x", None),
            ("", None),
        ] {
            assert_eq!(asked_for(query), left_ms.map(Duration::from_millis), "{query}");
        }
    }
}
