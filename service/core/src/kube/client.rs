//! Requests to the API server: pages of lists, watches and writes.
//!
//! This module owns the time limit and the size limit of each request. This module repeats no request: callers decide
//! about repetitions.

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

/// Number of objects in one page of a list, as many as client-go requests.
pub const LIST_PAGE: u32 = 500;
/// Largest page of a list that is read into memory as a whole, in bytes: five hundred objects of 64 KiB.
const PAGE_BYTES_MAX: usize = 32 << 20;
/// Maximum number of bytes of a Status object in the answer to a list request.
const REFUSED_BYTES_MAX: usize = 64 << 10;
/// Maximum number of bytes of the answer to a request other than a list or watch.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Time limit for a page of a list. kube-apiserver gives a request 60 s.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of a write. A retry after the limit costs less than further waiting.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit for the API server to accept a watch. A working API server accepts a watch at once; a hanging server must
/// not block the service.
const WATCH_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Media types for requests of only the metadata of objects. A server that does not support these media types sends
/// whole objects.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";
/// Maximum number of characters that are kept of a server's error message.
const MESSAGE_CHARS_MAX: usize = 300;
/// Maximum number of writes and lists at one time: one for each worker of the reconciler, and some more.
const LIMITS: Limits = Limits { open_max: 64, idle_max: 16 };

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Wire(#[from] wire::Error),
    /// The status of an answer other than success.
    #[error("the API server answered {status}{}", message.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        status: StatusCode,
        /// Seconds after which the server allows a retry.
        retry_after_s: Option<u64>,
        message: Option<String>,
        /// Whether the server says that it has not reached the requested resource version.
        ahead: bool,
    },
    /// The path or a header of the request could not be built.
    #[error("request: {0}")]
    Request(#[from] http::Error),
}

impl Error {
    /// The status, if there was an answer.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the API server says that it has not reached the requested resource version.
    pub fn is_ahead(&self) -> bool {
        matches!(self, Self::Status { ahead: true, .. })
    }

    /// The time that the API server tells the client to wait before a retry.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after_s, .. } => retry_after_s.map(Duration::from_secs),
            _ => None,
        }
    }
}

/// A kind of write, with the media type of its body.
#[derive(Debug, Clone, Copy)]
pub enum Write {
    Create,
    /// PATCH with a JSON merge patch (RFC 7386).
    Merge,
    /// PATCH with a strategic merge patch, which merges lists of containers by name.
    Strategic,
    Replace,
    Delete,
}

/// Time between two checks of the files with server address, authorities and credentials. The service uses a rotated
/// certificate long before the former certificate expires.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(10);

pub struct Client {
    transport: Transport,
    link: RwLock<Arc<Link>>,
}

/// The connection to the server, made from the last content of its files.
struct Link {
    cluster: Cluster,
    wire: wire::Client,
}

impl Client {
    pub fn new(cluster: Cluster, transport: Transport) -> Self {
        Self { transport, link: RwLock::new(Arc::new(Link::new(cluster, transport))) }
    }

    /// Checks the files with the server's address, authorities and credentials again and again, until dropped. The
    /// first request after a change of the files opens a new connection. Open streams of the former connection
    /// continue.
    pub async fn follow_files(self: Arc<Self>) {
        let mut refused = String::new();
        loop {
            sleep(FOLLOW_INTERVAL).await;
            match self.renew() {
                Ok(()) => refused.clear(),
                // Logged once for each distinct reason: half-written pairs are normal for a moment.
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

    /// Passes one page of a list to `take` as it arrives, until `take` returns false; `path` includes the query. With
    /// `metadata`, only the metadata of objects is requested. A page has no size limit: `take` decides how much is
    /// kept.
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

    /// Reads a whole page of a list into memory, for programs that end after their work.
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

    /// Reads a single object or a short list.
    pub async fn read(&self, path: &str) -> Result<Bytes, Error> {
        self.read_at_most(path, ANSWER_BYTES_MAX, Instant::now() + WRITE_TIMEOUT).await
    }

    pub async fn read_before(&self, path: &str, deadline: Instant) -> Result<Bytes, Error> {
        self.read_at_most(path, ANSWER_BYTES_MAX, deadline).await
    }

    /// Reads a single object of at most `cap_bytes` by `deadline`.
    pub async fn read_at_most(&self, path: &str, cap_bytes: usize, deadline: Instant) -> Result<Bytes, Error> {
        let link = self.link();
        let request = link.request(Method::GET, path, None, Bytes::new())?;
        let response = link.wire.fetch(request, cap_bytes, deadline).await?;
        link.success(response)
    }

    /// Writes an object; returns the object after the write.
    pub async fn write(&self, write: Write, path: &str, body: &serde_json::Value) -> Result<Bytes, Error> {
        self.write_before(write, path, body, Instant::now() + WRITE_TIMEOUT).await
    }

    /// Writes an object by `deadline`; returns the object after the write.
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

    /// Sends a JSON object by server-side apply; `path` contains the query with the field manager. The answer to the
    /// request contains only metadata, because a whole object may be as large as the request.
    pub async fn apply(&self, path: &str, object: Bytes, deadline: Instant) -> Result<Bytes, Error> {
        let link = self.link();
        // JSON is YAML, and this is the only media type that every server accepts for it.
        let request = link.request(Method::PATCH, path, Some("application/apply-patch+yaml"), object)?;
        let request = accepting(request, METADATA);
        let response = link.wire.fetch(request, ANSWER_BYTES_MAX, deadline).await?;
        link.success(response)
    }

    /// Opens a watch; `path` includes the query.
    pub async fn watch(&self, path: &str) -> Result<Stream, Error> {
        let link = self.link();
        Self::open(&link, link.request(Method::GET, path, None, Bytes::new())?).await
    }

    /// Opens a watch whose events have only the metadata of each object; `path` includes the query.
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
        // The first piece of an error's body has its message; the rest is not worth the wait.
        let body = tokio::time::timeout(Duration::from_secs(1), stream.chunk()).await;
        let body = body.ok().and_then(Result::ok).flatten().unwrap_or_default();
        Err(link.failure(&Response::from_parts(head, body)))
    }

    /// Makes all later requests use a new connection.
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
