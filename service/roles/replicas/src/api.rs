//! The steps of a call to the API that scales Deployments: caller, rate, route, rights, and the log line about the
//! call.
//!
//! `service_core::edge::serve` runs these steps in order; this module implements them and makes request ids. Replica
//! counts are read only from the cache; only calls that change a Deployment send requests to the API server.

use std::sync::Arc;
use std::time::{Duration, Instant as StdInstant, SystemTime};

use bytes::Bytes;
use http::request::Parts as Head;
use http::{HeaderMap, HeaderValue, StatusCode, Version, header};
use http_body::Body;
use parking_lot::RwLock;
use prometheus_client::metrics::gauge::Gauge;
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::access::Access;
use super::answer::{self, CACHE_AGE, CACHE_REVISION, REQUEST_ID, REVISION, Refusal};
use super::deployment::Deployment;
use super::image;
use super::limits::Limits;
use super::list::{self, Entry};
use super::metrics::Metrics;
use super::route::{How, Route, Target, Verb, route};
use super::scale::{Terms, Writer, Written};
use super::{OPENAPI, body};
use crate::config;
use service_core::edge::{Answer, Broken, Calls, ClientCertificate, ListenerMetrics, Peer};
use service_core::logs::{Throttle, names};
use service_core::role::Review;
use service_watch::{Key, Link, View, reaches};

/// The text of the answer to a change of a replica count; the API description prescribes it.
const SCALED: &str = "Replica count updated successfully.";
const IMAGE_SET: &str = "Image updated successfully.";
const DRY_RUN: &str = "Dry run: nothing was changed.";
/// After this time without a watch stream and without data, the API server counts as disconnected. The usual gap
/// between two watch streams is shorter: a second.
const DISCONNECTED_AFTER: Duration = Duration::from_secs(5);
/// Maximum number of bytes of a request id from a caller.
const REQUEST_ID_BYTES_MAX: usize = 64;
/// Retry delay for a caller that was refused because of a limit for all callers.
const BUSY_RETRY: Duration = Duration::from_secs(1);

pub struct Parts {
    pub view: View<Deployment>,
    /// The client that changes Deployments.
    pub client: Arc<service_core::kube::Client>,
    /// The reviewer of images; `None` if images cannot be set.
    pub admit: Option<Arc<dyn Review>>,
    pub metrics: Metrics,
    /// The metrics about clients whose certificates are no longer valid.
    pub edge: ListenerMetrics,
}

pub struct Api {
    view: View<Deployment>,
    writer: Writer,
    admit: Option<Arc<dyn Review>>,
    /// Rights and rates; replaced as a whole when the configuration changes.
    gate: RwLock<Arc<Gate>>,
    places: Semaphore,
    body_max: usize,
    timeout: Duration,
    metrics: Metrics,
    edge: ListenerMetrics,
    throttle: Throttle,
}

/// The rights and rate limits of callers.
struct Gate {
    access: Access,
    limits: Arc<Limits>,
}

pub struct Call {
    id: HeaderValue,
    version: Version,
    verb: &'static str,
    peer: Arc<Peer>,
    gate: Arc<Gate>,
    started: StdInstant,
}

#[derive(Serialize)]
struct Message<'a> {
    message: &'a str,
}

#[derive(Serialize)]
struct ImageSet<'a> {
    message: &'a str,
    image: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Healthy {
    status: &'static str,
    kubernetes: &'static str,
}

#[derive(Serialize)]
struct Unhealthy {
    status: &'static str,
    error: String,
}

impl Api {
    pub fn new(settings: &config::Replicas, parts: Parts) -> Self {
        let gate = Gate { access: Access::new(&settings.allow), limits: Arc::new(Limits::new(settings.rate)) };
        Self {
            view: parts.view,
            writer: Writer::new(parts.client, parts.metrics.clone()),
            admit: parts.admit,
            gate: RwLock::new(Arc::new(gate)),
            places: Semaphore::new(settings.max_in_flight),
            body_max: settings.max_body_bytes,
            timeout: settings.timeout,
            metrics: parts.metrics,
            edge: parts.edge,
            throttle: Throttle::default(),
        }
    }

    /// Uses the rights `allow` and the limits `rate` from now on. If the rate limits are unchanged, the buckets keep
    /// their tokens.
    pub fn replace(&self, allow: &config::Allow, rate: config::Rate) {
        let mut gate = self.gate.write();
        let limits = if gate.limits.rate() == rate { Arc::clone(&gate.limits) } else { Arc::new(Limits::new(rate)) };
        *gate = Arc::new(Gate { access: Access::new(allow), limits });
    }

    /// The client's certificate, if it is still valid.
    fn client_of<'a>(&self, peer: &'a Peer) -> Result<&'a ClientCertificate, Refusal> {
        // Absent only behind a listener without client certificates, which this API never has.
        let none = || Refusal::new(StatusCode::UNAUTHORIZED, "a client certificate is needed");
        let client = peer.client().ok_or_else(none)?;
        client.check(SystemTime::now()).map_err(|reason| {
            self.edge.client_refused(reason);
            if let Some(left_out) = self.throttle.admit() {
                let (listener, reason) = (self.edge.listener(), reason.label());
                tracing::warn!(
                    name: names::TLS_REFUSED,
                    listener, address = %peer.address(), peer = &**client.identity(), reason, left_out,
                    "a client that is connected was refused"
                );
            }
            Refusal { closes: true, ..Refusal::new(StatusCode::UNAUTHORIZED, reason.text()) }
        })?;
        Ok(client)
    }

    fn refused(&self, call: &Call, reason: &'static str) {
        if let Some(left_out) = self.throttle.admit() {
            tracing::warn!(
                name: crate::events::CALL_REFUSED,
                request_id = call.id(), peer = &**call.client().identity(), address = %call.peer.address(), reason, left_out,
                "a call was refused"
            );
        }
    }

    /// The state of the watch's connection; an error before the first list is complete.
    fn listed(&self) -> Result<Link, Refusal> {
        let link = self.view.diagnostics().link();
        if link.listed {
            return Ok(link);
        }
        let text = "the deployments are not listed yet";
        Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text).after(BUSY_RETRY))
    }

    /// Adds headers about the cache's state to `answer`.
    #[expect(clippy::unused_self, reason = "it speaks of this API's cache")]
    fn stamped(&self, mut answer: Answer, link: &Link) -> Answer {
        if let Some(revision) = &link.revision {
            answer::put(&mut answer, CACHE_REVISION, revision);
        }
        let age_ms = u64::try_from(link.age.as_millis()).unwrap_or(u64::MAX);
        answer.headers_mut().insert(CACHE_AGE, age_ms.into());
        answer
    }

    fn read_one(&self, target: Target<'_>) -> Result<Answer, Refusal> {
        let link = self.listed()?;
        let Some(object) = self.view.store().object(&key(target)) else {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "there is no such deployment"));
        };
        let mut answer = self.stamped(answer::json(StatusCode::OK, &Entry::from(&*object)), &link);
        answer::put(&mut answer, REVISION, &object.version);
        Ok(answer)
    }

    fn health(&self) -> Answer {
        let link = self.view.diagnostics().link();
        let apart = link.apart.filter(|apart| *apart.min(&link.age) > DISCONNECTED_AFTER);
        let error = match (link.listed, apart) {
            (false, _) => Some("the deployments are not listed yet".to_owned()),
            (true, Some(apart)) => Some(format!("no stream from the API server for {} s", apart.as_secs())),
            (true, None) => None,
        };
        let answer = match error {
            None => answer::json(StatusCode::OK, &Healthy { status: "healthy", kubernetes: "connected" }),
            Some(error) => answer::json(StatusCode::SERVICE_UNAVAILABLE, &Unhealthy { status: "unhealthy", error }),
        };
        self.stamped(answer, &link)
    }

    async fn scale(
        &self,
        call: &Call,
        target: Target<'_>,
        count: i32,
        how: How,
        terms: Terms<'_>,
    ) -> Result<Answer, Refusal> {
        let written = self.writer.scale(target, count, terms).await;
        let outcome = match &written {
            Ok(written) if how.wait => self.observed(target, written, terms.deadline).await,
            _ => Ok(()),
        };
        let result = outcome.and(written.clone());
        Self::audit(call, (Verb::Scale, target, None), (&written, &count.to_string()), how, result.as_ref().err());
        let written = result?;
        let message = if how.dry_run { DRY_RUN } else { SCALED };
        let mut answer = answer::json(StatusCode::OK, &Message { message });
        answer::put(&mut answer, REVISION, &written.revision);
        Ok(answer)
    }

    async fn image(
        &self,
        call: &Call,
        (target, container): (Target<'_>, &str),
        image: &str,
        how: How,
        terms: Terms<'_>,
    ) -> Result<Answer, Refusal> {
        let Some(admit) = &self.admit else {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "images are not set here (replicas.images)"));
        };
        let set = image::set(&self.writer, &**admit, (target, container), image, terms).await;
        let written = set.as_ref().map(|set| set.written.clone()).map_err(Clone::clone);
        let outcome = match &written {
            Ok(written) if how.wait => self.observed(target, written, terms.deadline).await,
            _ => Ok(()),
        };
        let result = outcome.and(set);
        let after = result.as_ref().map_or(image, |set| &set.image);
        let what = (Verb::Image, target, Some(container));
        Self::audit(call, what, (&written, after), how, result.as_ref().err());
        let set = result?;
        let message = if how.dry_run { DRY_RUN } else { IMAGE_SET };
        let body = ImageSet { message, image: &set.image, warnings: &set.warnings };
        let mut answer = answer::json(StatusCode::OK, &body);
        answer::put(&mut answer, REVISION, &set.written.revision);
        Ok(answer)
    }

    /// Waits until the cache shows the change `written`, or shows that the Deployment is gone.
    async fn observed(&self, target: Target<'_>, written: &Written, deadline: Instant) -> Result<(), Refusal> {
        let key = key(target);
        let seen =
            self.view.until(&key, deadline, |object| object.is_none_or(|o| reaches(&o.version, &written.revision)));
        if seen.await {
            return Ok(());
        }
        let text = format!("it was written, as revision {}, and not observed in time", written.revision);
        Err(Refusal::new(StatusCode::GATEWAY_TIMEOUT, text))
    }

    /// Logs a call that changed a Deployment.
    fn audit(
        call: &Call,
        (verb, target, container): (Verb, Target<'_>, Option<&str>),
        (written, after): (&Result<Written, Refusal>, &str),
        how: How,
        refusal: Option<&Refusal>,
    ) {
        let written = written.as_ref().ok();
        tracing::info!(
            name: crate::events::AUDIT_WRITE,
            request_id = call.id(),
            peer = &**call.client().identity(),
            address = %call.peer.address(),
            verb = verb.name(),
            namespace = target.namespace,
            name = target.name,
            container,
            before = written.map(|written| &*written.before),
            after,
            dry_run = how.dry_run,
            status = refusal.map_or(200, |refusal| refusal.status.as_u16()),
            revision = written.map(|written| &*written.revision),
            attempts = written.map(|written| written.attempts),
            duration_ms = u64::try_from(call.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            error = refusal.map(|refusal| &*refusal.text),
            "{}",
            if refusal.is_none() { "a write" } else { "a write that was refused" }
        );
    }

    fn audit_refusal(call: &Call, asked: &Route<'_>, refusal: &Refusal) {
        let (target, container, how) = match asked {
            Route::Scale(target, how) => (*target, None, *how),
            Route::Image(target, container, how) => (*target, Some(*container), *how),
            _ => return,
        };
        let nothing = Err(refusal.clone());
        Self::audit(call, (asked.verb(), target, container), (&nothing, ""), how, Some(refusal));
    }
}

impl Call {
    fn id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }

    /// The client of the call; the listener has accepted the client's certificate.
    fn client(&self) -> &ClientCertificate {
        self.peer.client().expect("a call without a client was refused before anything is said of it")
    }
}

impl Calls for Api {
    type Call = Call;
    type Permit<'a> = SemaphorePermit<'a>;
    type Target<'a> = Route<'a>;
    type Body<'a> = Bytes;
    type Refusal = Refusal;

    fn in_flight(&self) -> &Gauge {
        &self.metrics.in_flight
    }

    fn call(&self, head: &Head, peer: Arc<Peer>) -> Call {
        let (id, version, gate) = (request_id(&head.headers), head.version, Arc::clone(&self.gate.read()));
        Call { id, version, verb: "none", peer, gate, started: StdInstant::now() }
    }

    fn budget(&self, _: &Head) -> Duration {
        self.timeout
    }

    fn target<'a>(&self, call: &mut Call, head: &'a Head) -> Result<Route<'a>, Refusal> {
        let client = self.client_of(&call.peer)?;
        if let Err(soon) = call.gate.limits.take(client.identity()) {
            call.gate.limits.sweep();
            self.metrics.limited(soon.whose);
            self.refused(call, "rate");
            return Err(too_many("calls come too often").after(soon.wait));
        }
        if !names_one_host(head) {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "a request names its host, and once"));
        }
        let asked = route(&head.method, head.uri.path(), head.uri.query())?;
        call.verb = asked.verb().name();
        if !call.gate.access.may(asked.verb(), &call.client().facts().alternatives) {
            self.refused(call, "not-allowed");
            let text = format!("{} may not {}", call.client().identity(), call.verb);
            let refusal = Refusal::new(StatusCode::FORBIDDEN, text);
            Self::audit_refusal(call, &asked, &refusal);
            return Err(refusal);
        }
        Ok(asked)
    }

    fn enter<'a>(&'a self, call: &'a Call) -> Result<SemaphorePermit<'a>, Refusal> {
        self.places.try_acquire().map_err(|_| {
            self.metrics.limited("in-flight");
            self.refused(call, "in-flight");
            too_many("too many calls at one time").after(BUSY_RETRY)
        })
    }

    /// Reads the body of a call; only calls that set a count or an image have a body.
    async fn read<'a, B: Body<Data = Bytes, Error: Broken> + Send + Unpin>(
        &'a self,
        _: &'a Self::Call,
        (asked, head): (&Self::Target<'_>, &Head),
        body: &mut B,
        deadline: Instant,
    ) -> Result<Self::Body<'a>, Refusal> {
        match asked {
            Route::Scale(..) | Route::Image(..) => body::read(&head.headers, body, self.body_max, deadline).await,
            _ => Ok(Bytes::new()),
        }
    }

    async fn answer(
        &self,
        call: &Self::Call,
        (asked, head): (Self::Target<'_>, &Head),
        body: Self::Body<'_>,
        deadline: Instant,
    ) -> Result<Answer, Refusal> {
        match asked {
            Route::Read(target) => self.read_one(target),
            Route::List(page) => self.listed().map(|link| self.stamped(list::page(self.view.store(), &page), &link)),
            Route::Health => Ok(self.health()),
            Route::Description => Ok(answer::text(StatusCode::OK, OPENAPI)),
            Route::Scale(target, how) => {
                let count = body::replica_count(&body)?;
                let terms = Terms { seen: seen(&head.headers)?, dry_run: how.dry_run, deadline };
                self.scale(call, target, count, how, terms).await
            }
            Route::Image(target, container, how) => {
                let image = body::image(&body)?;
                let terms = Terms { seen: seen(&head.headers)?, dry_run: how.dry_run, deadline };
                self.image(call, (target, container), &image, how, terms).await
            }
        }
    }

    fn panicked(&self, call: &Call) -> Refusal {
        self.metrics.panics.inc();
        tracing::error!(name: crate::events::CALL_PANICKED, request_id = call.id(), "a call panicked");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "a defect of this service: see its log")
    }

    fn status(refusal: &Refusal) -> StatusCode {
        refusal.status
    }

    fn ended(&self, call: Call, result: Result<Answer, Refusal>, took: Duration) -> Answer {
        let closes = result.as_ref().is_err_and(|refusal| refusal.closes);
        let mut answer = result.unwrap_or_else(|refusal| refusal.answer());
        if closes && call.version == Version::HTTP_11 {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        answer.headers_mut().insert(REQUEST_ID, call.id);
        self.metrics.duration.observe(took.as_secs_f64());
        self.metrics.answered(call.verb, answer.status());
        answer
    }
}

/// Whether a request names exactly one host, as HTTP demands (RFC 9112, section 3.2; RFC 9113, section 8.3.1). If a
/// request names two hosts, proxies differ in the name that they use.
fn names_one_host(head: &Head) -> bool {
    let hosts = head.headers.get_all(header::HOST).iter().count();
    hosts == 1 || hosts == 0 && head.version == Version::HTTP_2 && head.uri.authority().is_some()
}

fn key(target: Target<'_>) -> Key {
    Key { namespace: target.namespace.into(), name: target.name.into() }
}

fn too_many(text: &str) -> Refusal {
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, text)
}

/// The revision in the header `If-Match: "REVISION"`, which the caller has from `Longhaul-Revision` of an answer.
fn seen(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().ok().map(|text| text.trim_matches('"'));
    let fits = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    text.filter(fits).map(Some).ok_or_else(|| Refusal::bad("If-Match: one revision, as Longhaul-Revision had it"))
}

/// The caller's request id if it is valid, else a new id.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_name = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        (1..=REQUEST_ID_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(fits)
    };
    headers.get(REQUEST_ID).filter(is_name).cloned().unwrap_or_else(|| {
        let fresh = format!("{:016x}", rand::random::<u64>());
        HeaderValue::from_str(&fresh).unwrap_or(HeaderValue::from_static("-"))
    })
}
