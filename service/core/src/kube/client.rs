//! Requests to the API server: one page of a list, one watch, one write.
//!
//! Owns timeouts and caps of each. It does not retry: when and how often is the caller's knowledge.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use parking_lot::RwLock;
use tokio::time::{Instant, sleep};

use super::kubeconfig::{Cluster, KubeconfigError};
use super::status::Status;
use crate::kube::Transport;
use crate::wire::{self, Limits, Protocol, Stream};

/// Objects in a page of a list, as client-go asks.
pub const LIST_PAGE: u32 = 500;
/// Largest page that is read as a whole: five hundred objects of 64 KiB.
const PAGE_BYTES_MAX: usize = 32 << 20;
/// Bytes of an answer to a list that is no list: a Status.
const REFUSED_BYTES_MAX: usize = 64 << 10;
/// Largest answer to anything else.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// A page that takes longer would not fit the 60 s that kube-apiserver gives a request.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// A write that takes longer is better asked about again.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// A server that accepts a watch answers at once; one that swallows the request must not hold us.
const WATCH_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The media types under which a server tells only the metadata of what it has, and all of it should it not know them.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";
/// Enough of an error's message to act on.
const MESSAGE_CHARS_MAX: usize = 300;
/// Writes and lists at one time: the workers and some.
const LIMITS: Limits = Limits { open_max: 64, idle_max: 16 };

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer.
    #[error(transparent)]
    Wire(#[from] wire::Error),
    /// An answer that is not success.
    #[error("the API server answered {status}{}", message.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        /// Its status.
        status: StatusCode,
        /// Seconds it asks to wait.
        retry_after_s: Option<u64>,
        /// The message of its Status object.
        message: Option<String>,
        /// Whether it says that it has not reached the version asked for.
        ahead: bool,
    },
    /// The path or header could not be built.
    #[error("request: {0}")]
    Request(#[from] http::Error),
}

impl Error {
    /// The status, when there was an answer.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the server says that it has not reached the version asked for.
    pub fn is_ahead(&self) -> bool {
        matches!(self, Self::Status { ahead: true, .. })
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after_s, .. } => retry_after_s.map(Duration::from_secs),
            _ => None,
        }
    }
}

/// A write and its body's media type.
#[derive(Debug, Clone, Copy)]
pub enum Write {
    /// POST of JSON.
    Create,
    /// PATCH with a JSON merge patch (RFC 7386).
    Merge,
    /// PATCH with a strategic merge patch, which knows that lists of containers are merged by name.
    Strategic,
    /// PUT of JSON.
    Replace,
    /// DELETE.
    Delete,
}

/// How often the files of the connection are looked at: a rotated certificate is in use long before the old one ends.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(10);

/// A client of one API server.
pub struct Client {
    transport: Transport,
    link: RwLock<Arc<Link>>,
}

/// The way to the server as its files said last.
struct Link {
    cluster: Cluster,
    wire: wire::Client,
}

impl Client {
    /// A client without connections.
    pub fn new(cluster: Cluster, transport: Transport) -> Self {
        Self { transport, link: RwLock::new(Arc::new(Link::new(cluster, transport))) }
    }

    /// Follows the files that say where the server is, whom to trust and who we are, until dropped. What changed in them counts for
    /// the next request: it makes a connection of its own. Streams under way go on.
    pub async fn follow_files(self: Arc<Self>) {
        let mut refused = String::new();
        loop {
            sleep(FOLLOW_INTERVAL).await;
            match self.renew() {
                Ok(()) => refused.clear(),
                // Said once for each distinct reason: half-written pairs are normal for a moment.
                Err(error) if error.to_string() != refused => {
                    refused = error.to_string();
                    tracing::warn!(name: crate::logs::names::API_KEPT, %error, "the connection to the API server was not replaced");
                }
                Err(_) => {}
            }
        }
    }

    fn renew(&self) -> Result<(), KubeconfigError> {
        if let Some(fresh) = self.link().cluster.reread()? {
            *self.link.write() = Arc::new(Link::new(fresh, self.transport));
            tracing::info!(name: crate::logs::names::API_REPLACED, "the connection to the API server was replaced: its files have changed");
        }
        Ok(())
    }

    fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link.read())
    }

    /// One page of a list, handed to `take` as it comes, until that wants no more; `path` has the query. With `metadata` nothing but the
    /// metadata of each object is asked for. A page has no largest size: what is kept of it is the business of `take`.
    pub async fn page(
        &self,
        path: &str,
        metadata: bool,
        take: &mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> Result<(), Error> {
        let link = self.link();
        let request = link.request(Method::GET, path, None, Bytes::new())?;
        let request = if metadata { accepting(request, METADATA_LIST) } else { request };
        let mut refused = Vec::new();
        let mut each = |head: &http::response::Parts, piece: &[u8]| {
            if head.status.is_success() {
                return take(piece);
            }
            refused.extend_from_slice(&piece[..piece.len().min(REFUSED_BYTES_MAX - refused.len())]);
            refused.len() < REFUSED_BYTES_MAX
        };
        let head = link.wire.pieces(request, Instant::now() + PAGE_TIMEOUT, &mut each).await?;
        link.success(Response::from_parts(head, refused.into())).map(drop)
    }

    /// One page of a list as a whole, for programs that end with their work.
    pub async fn whole_page(&self, path: &str, metadata: bool) -> Result<Bytes, Error> {
        let mut body = Vec::new();
        let mut is_too_large = false;
        let mut take = |piece: &[u8]| {
            is_too_large = body.len() + piece.len() > PAGE_BYTES_MAX;
            body.extend_from_slice(if is_too_large { &[] } else { piece });
            !is_too_large
        };
        self.page(path, metadata, &mut take).await?;
        if is_too_large { Err(wire::Error::TooLarge { cap_bytes: PAGE_BYTES_MAX }.into()) } else { Ok(body.into()) }
    }

    /// A single object or a short list.
    pub async fn read(&self, path: &str) -> Result<Bytes, Error> {
        self.read_at_most(path, ANSWER_BYTES_MAX, Instant::now() + WRITE_TIMEOUT).await
    }

    /// A single object, at the latest at `deadline`.
    pub async fn read_before(&self, path: &str, deadline: Instant) -> Result<Bytes, Error> {
        self.read_at_most(path, ANSWER_BYTES_MAX, deadline).await
    }

    /// A single object of at most `cap_bytes`, at the latest at `deadline`.
    pub async fn read_at_most(&self, path: &str, cap_bytes: usize, deadline: Instant) -> Result<Bytes, Error> {
        let link = self.link();
        let request = link.request(Method::GET, path, None, Bytes::new())?;
        let response = link.wire.fetch(request, cap_bytes, deadline).await?;
        link.success(response)
    }

    /// A write; the answer is the object as it is now.
    pub async fn write(&self, write: Write, path: &str, body: &serde_json::Value) -> Result<Bytes, Error> {
        self.write_before(write, path, body, Instant::now() + WRITE_TIMEOUT).await
    }

    /// A write that has to be answered at `deadline`.
    pub async fn write_before(
        &self,
        write: Write,
        path: &str,
        body: &serde_json::Value,
        deadline: Instant,
    ) -> Result<Bytes, Error> {
        let (method, media_type) = match write {
            Write::Create => (Method::POST, "application/json"),
            Write::Merge => (Method::PATCH, "application/merge-patch+json"),
            Write::Strategic => (Method::PATCH, "application/strategic-merge-patch+json"),
            Write::Replace => (Method::PUT, "application/json"),
            Write::Delete => (Method::DELETE, "application/json"),
        };
        let link = self.link();
        let request = link.request(method, path, Some(media_type), body.to_string().into())?;
        let response = link.wire.fetch(request, ANSWER_BYTES_MAX, deadline).await?;
        link.success(response)
    }

    /// A server-side apply (`path` has the query with the field manager) of a JSON object, answered at the latest at `deadline`. Only the
    /// metadata comes back: the answer to a large object would be as large again.
    pub async fn apply(&self, path: &str, object: Bytes, deadline: Instant) -> Result<Bytes, Error> {
        let link = self.link();
        // JSON is YAML, and this is the only media type that every server takes for it.
        let request = link.request(Method::PATCH, path, Some("application/apply-patch+yaml"), object)?;
        let request = accepting(request, METADATA);
        let response = link.wire.fetch(request, ANSWER_BYTES_MAX, deadline).await?;
        link.success(response)
    }

    /// Opens a watch; `path` has the query.
    pub async fn watch(&self, path: &str) -> Result<Stream, Error> {
        let link = self.link();
        Self::open(&link, link.request(Method::GET, path, None, Bytes::new())?).await
    }

    /// Opens a watch whose events carry nothing but the metadata of each object; `path` has the query.
    pub async fn metadata_watch(&self, path: &str) -> Result<Stream, Error> {
        let link = self.link();
        Self::open(&link, accepting(link.request(Method::GET, path, None, Bytes::new())?, METADATA)).await
    }

    async fn open(link: &Link, request: Request<Bytes>) -> Result<Stream, Error> {
        let response = link.wire.stream(request, Instant::now() + WATCH_HEAD_TIMEOUT).await?;
        let (head, mut stream) = response.into_parts();
        if head.status == StatusCode::OK {
            return Ok(stream);
        }
        // The first piece of an error's body has its message; more is not worth waiting for.
        let body = tokio::time::timeout(Duration::from_secs(1), stream.chunk()).await;
        let body = body.ok().and_then(Result::ok).flatten().unwrap_or_default();
        Err(link.failure(&Response::from_parts(head, body)))
    }

    /// Makes every later request use a fresh connection.
    pub fn forget_connections(&self) {
        self.link().wire.forget_connections();
    }
}

fn accepting(mut request: Request<Bytes>, media_types: &'static str) -> Request<Bytes> {
    request.headers_mut().insert(header::ACCEPT, http::HeaderValue::from_static(media_types));
    request
}

impl Link {
    fn new(cluster: Cluster, transport: Transport) -> Self {
        let protocol = match transport {
            Transport::Http1 => Protocol::Http1,
            Transport::Http2 => Protocol::Http2,
        };
        let wire = wire::Client::new(cluster.origin.clone(), protocol, LIMITS);
        Self { cluster, wire }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        media_type: Option<&str>,
        body: Bytes,
    ) -> Result<Request<Bytes>, http::Error> {
        let mut builder = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.cluster.base_path))
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("longhaul-service/", env!("CARGO_PKG_VERSION")));
        if let Some(media_type) = media_type {
            builder = builder.header(header::CONTENT_TYPE, media_type);
        }
        if let Some(token) = self.cluster.token.value() {
            builder = builder.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        builder.body(body)
    }

    fn success(&self, response: Response<Bytes>) -> Result<Bytes, Error> {
        if response.status().is_success() { Ok(response.into_body()) } else { Err(self.failure(&response)) }
    }

    fn failure(&self, response: &Response<Bytes>) -> Error {
        if response.status() == StatusCode::UNAUTHORIZED {
            self.cluster.token.refused();
        }
        let retry_after = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let status = Status::read(response.body());
        Error::Status {
            status: response.status(),
            retry_after_s: retry_after.and_then(|text| text.trim().parse().ok()),
            message: status.message().map(|text| text.chars().take(MESSAGE_CHARS_MAX).collect()),
            ahead: status.is_ahead(),
        }
    }
}

#[cfg(test)]
mod tests;
