//! Sends requests to the API server: chooses a connection, limits the time, and returns the answer.
//!
//! The client reuses idle HTTP/1.1 connections, shares HTTP/2 connections up to the server's limit of streams, and
//! closes abandoned connections.

mod answer;
mod connection;
mod lines;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

pub use answer::Answer;
pub use lines::Lines;
pub use trouble::{Refusal, Trouble};

use crate::args::Http;
use crate::kubeconfig::Kubeconfig;
use crate::mistakes::{Mistake, Mistakes};
use answer::{Body, Leaked, Lease};
use connection::{Connection, Two, connect};

/// Time limit from the request to the head of its answer.
const HEAD_DEADLINE: Duration = Duration::from_secs(4);
/// Maximum number of idle connections. One kind of objects needs a connection for a list and a connection for a write
/// at the same time.
const IDLE_MAX: usize = 4;
/// With the mistake `queues-watches`: maximum number of simultaneous requests, as in a client library with this bug.
const QUEUE_PLACES: usize = 64;
/// Maximum number of attempts on other connections if a reused connection turns out to be closed.
const STALE_TRIES: usize = 4;

/// The connections to the API server, which all clones of this value share.
#[derive(Clone)]
pub struct Wire(Arc<Shared>);

#[derive(Debug, Clone)]
pub struct Ask {
    method: Method,
    path: String,
    body: Option<(&'static str, Bytes)>,
    patient: bool,
}

pub(crate) struct Shared {
    config: Kubeconfig,
    tls: TlsConnector,
    pub(crate) mistakes: Mistakes,
    pool: Mutex<Pool>,
    /// Allows only one task at a time to open an HTTP/2 connection, so that other tasks share it.
    connecting: Semaphore,
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct Pool {
    ones: Vec<connection::One>,
    twos: Vec<Two>,
    /// Connections that only a client with a mistake keeps open.
    leaked: Vec<Leaked>,
}

impl Ask {
    pub fn get(path: String) -> Self {
        Self { method: Method::GET, path, body: None, patient: false }
    }

    pub fn merge_patch(path: String, body: String) -> Self {
        let body = Some(("application/merge-patch+json", Bytes::from(body)));
        Self { method: Method::PATCH, path, body, patient: false }
    }

    pub fn delete(path: String) -> Self {
        Self { method: Method::DELETE, path, body: None, patient: false }
    }

    /// A request with a whole object: a POST that creates it, or a PUT that replaces the existing object.
    pub fn object(path: String, body: &serde_json::Value, replaces: bool) -> Self {
        let method = if replaces { Method::PUT } else { Method::POST };
        let body = Some(("application/json", Bytes::from(body.to_string())));
        Self { method, path, body, patient: false }
    }

    /// Removes the time limit for the head of the answer. Only a client with a mistake removes this time limit.
    pub fn patiently(mut self, patient: bool) -> Self {
        self.patient = patient;
        self
    }
}

impl Wire {
    /// A client for this server, without any open connection yet.
    pub fn new(config: Kubeconfig, http: Http, mistakes: Mistakes) -> anyhow::Result<Self> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut tls = tls.with_root_certificates(config.roots.clone()).with_no_client_auth();
        tls.alpn_protocols = match http {
            Http::One => vec![b"http/1.1".to_vec()],
            Http::Two => vec![b"h2".to_vec()],
            Http::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        Ok(Self(Arc::new(Shared {
            config,
            tls: TlsConnector::from(Arc::new(tls)),
            mistakes,
            pool: Mutex::default(),
            connecting: Semaphore::new(1),
            places: Arc::new(Semaphore::new(QUEUE_PLACES)),
        })))
    }

    /// Sends a request and waits for the head of its answer, with any status code.
    pub async fn send(&self, ask: &Ask) -> Result<Answer, Trouble> {
        let place = self.place().await;
        let mut last = Trouble::NoAnswer;
        for _ in 0..STALE_TRIES {
            let (lease, reused) = self.lease().await?;
            match self.exchange(lease, ask).await {
                Ok((status, headers, body, lease)) => {
                    let answer = Answer::new(self.0.clone(), status, &headers, body, lease, place);
                    if answer.status == 401 && !self.0.mistakes.made(Mistake::KeepsDeadToken) {
                        self.0.config.credential.renew();
                    }
                    return Ok(answer);
                }
                // The server closed an idle connection while the request was under way.
                Err(trouble @ Trouble::Broke(_)) if reused => last = trouble,
                Err(trouble) => return Err(trouble),
            }
        }
        Err(last)
    }

    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if !self.0.mistakes.made(Mistake::QueuesWatches) {
            return None;
        }
        self.0.places.clone().acquire_owned().await.ok()
    }

    /// A connection that can take one more request, and whether it was used before.
    async fn lease(&self) -> Result<(Lease, bool), Trouble> {
        if let Some(lease) = self.0.free() {
            return Ok((lease, true));
        }
        let _turn = self.0.connecting.acquire().await;
        if let Some(lease) = self.0.free() {
            return Ok((lease, true));
        }
        let Shared { config, tls, mistakes, .. } = &*self.0;
        match connect(&config.host, config.port, tls, mistakes).await? {
            Connection::One(one) => Ok((Lease::one(one), false)),
            Connection::Two(two) => {
                let leased = two.lease(true);
                debug_assert!(leased, "a new connection has room");
                if !mistakes.made(Mistake::ConnectionPerReconnect) {
                    self.0.pool.lock().twos.push(two.clone());
                }
                Ok((Lease::two(two), false))
            }
        }
    }

    async fn exchange(&self, lease: Lease, ask: &Ask) -> Result<(u16, http::HeaderMap, Body, Lease), Trouble> {
        let mistakes = &self.0.mistakes;
        let deadline = (!ask.patient && !mistakes.any(&[Mistake::NoHeaderTimeout, Mistake::OneConnectionWaits]))
            .then_some(HEAD_DEADLINE);
        let mut lease = lease;
        let answered = within(deadline, self.request(&mut lease, ask)).await;
        if matches!(answered, Err(Trouble::NoAnswer | Trouble::Broke(_))) {
            lease.retire();
        }
        let (status, headers, body) = answered?;
        Ok((status, headers, body, lease))
    }

    async fn request(&self, lease: &mut Lease, ask: &Ask) -> Result<(u16, http::HeaderMap, Body), Trouble> {
        let config = &self.0.config;
        let authority = format!("{}:{}", config.host, config.port);
        let request = Request::builder()
            .method(&ask.method)
            .header("user-agent", "planted-client")
            .header("accept", "application/json")
            .header("authorization", format!("Bearer {}", config.credential.token()));
        let (kind, content) = ask.body.clone().unzip();
        let request = match kind {
            Some(kind) => request.header("content-type", kind),
            None => request,
        };
        let content = content.unwrap_or_default();
        match lease {
            Lease::One(Some(one)) => {
                let request = request.uri(&ask.path).header("host", authority).body(Full::new(content));
                let request = request.map_err(|error| Trouble::Malformed(error.to_string()))?;
                one.sender.ready().await.map_err(broke)?;
                let (head, body) = one.sender.send_request(request).await.map_err(broke)?.into_parts();
                Ok((head.status.as_u16(), head.headers, Body::One(body)))
            }
            Lease::Two(two) => {
                let request = request.uri(format!("https://{authority}{}", ask.path)).body(());
                let request = request.map_err(|error| Trouble::Malformed(error.to_string()))?;
                let mut sender = two.sender.clone().ready().await.map_err(broke_two)?;
                let (response, mut stream) = sender.send_request(request, content.is_empty()).map_err(broke_two)?;
                if !content.is_empty() {
                    stream.send_data(content, true).map_err(broke_two)?;
                }
                let (head, body) = response.await.map_err(broke_two)?.into_parts();
                Ok((head.status.as_u16(), head.headers, Body::Two(body)))
            }
            Lease::One(None) => Err(Trouble::Broke("no connection".to_owned())),
        }
    }
}

impl Shared {
    /// An open connection that can take one more request.
    fn free(&self) -> Option<Lease> {
        if self.mistakes.made(Mistake::ConnectionPerReconnect) {
            return None;
        }
        let mut pool = self.pool.lock();
        pool.twos.retain(|two| !two.is_over());
        let whatever_the_limit = self.mistakes.made(Mistake::OneConnectionWaits);
        if let Some(two) = pool.twos.iter().find(|two| two.lease(whatever_the_limit)) {
            return Some(Lease::two(two.clone()));
        }
        while let Some(one) = pool.ones.pop() {
            if one.is_open() {
                return Some(Lease::one(one));
            }
        }
        None
    }

    /// Keeps an HTTP/1.1 connection for reuse after its last answer was read to the end.
    pub(crate) fn idle(&self, one: connection::One) {
        let mut pool = self.pool.lock();
        if pool.ones.len() < IDLE_MAX && one.is_open() {
            pool.ones.push(one);
        }
    }

    /// Keeps a connection open that the correct client would close.
    pub(crate) fn leak(&self, leaked: Leaked) {
        self.pool.lock().leaked.push(leaked);
    }
}

/// Waits for `work`, at most for the time limit if there is one.
pub async fn within<T>(
    deadline: Option<Duration>,
    work: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    match deadline {
        Some(deadline) => timeout(deadline, work).await.unwrap_or(Err(Trouble::NoAnswer)),
        None => work.await,
    }
}

fn broke(error: impl std::fmt::Display) -> Trouble {
    Trouble::Broke(error.to_string())
}

/// The error for a request that HTTP/2 broke off. If only the request's stream was reset, the connection can still be
/// used; after a refused stream it cannot.
#[expect(clippy::needless_pass_by_value, reason = "fits `map_err`")]
fn broke_two(error: h2::Error) -> Trouble {
    if error.is_reset() && error.reason() != Some(h2::Reason::REFUSED_STREAM) {
        Trouble::Reset(error.to_string())
    } else {
        Trouble::Broke(error.to_string())
    }
}
