//! Requests to the API server: one page of a list, one watch, one write.
//!
//! Owns timeouts and caps of each. It does not retry: when and how often is the caller's knowledge.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use tokio::time::Instant;

use super::kubeconfig::Cluster;
use super::status::Status;
use crate::config::Transport;
use crate::wire::{self, Limits, Protocol, Stream};

/// Objects in a page of a list, as client-go asks.
pub const LIST_PAGE: u32 = 500;
/// Largest page: five hundred objects of 64 KiB.
const PAGE_BYTES_MAX: usize = 32 << 20;
/// Largest answer to anything else.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// A page that takes longer would not fit the 60 s that kube-apiserver gives a request.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// A write that takes longer is better asked about again.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// A server that accepts a watch answers at once; one that swallows the request must not hold us.
const WATCH_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
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
    /// DELETE.
    Delete,
}

/// A client of one API server.
pub struct Client {
    cluster: Cluster,
    wire: wire::Client,
}

impl Client {
    /// A client without connections.
    pub fn new(cluster: Cluster, transport: Transport) -> Self {
        let protocol = match transport {
            Transport::Http1 => Protocol::Http1,
            Transport::Http2 => Protocol::Http2,
        };
        let wire = wire::Client::new(cluster.origin.clone(), protocol, LIMITS);
        Self { cluster, wire }
    }

    /// One page of a list; `path` has the query.
    pub async fn page(&self, path: &str) -> Result<Bytes, Error> {
        let request = self.request(Method::GET, path, None, Bytes::new())?;
        let response = self.wire.fetch(request, PAGE_BYTES_MAX, Instant::now() + PAGE_TIMEOUT).await?;
        self.success(response)
    }

    /// A single object or a short list.
    pub async fn read(&self, path: &str) -> Result<Bytes, Error> {
        let request = self.request(Method::GET, path, None, Bytes::new())?;
        let response = self.wire.fetch(request, ANSWER_BYTES_MAX, Instant::now() + WRITE_TIMEOUT).await?;
        self.success(response)
    }

    /// A write; the answer is the object as it is now.
    pub async fn write(&self, write: Write, path: &str, body: &serde_json::Value) -> Result<Bytes, Error> {
        let (method, media_type) = match write {
            Write::Create => (Method::POST, "application/json"),
            Write::Merge => (Method::PATCH, "application/merge-patch+json"),
            Write::Delete => (Method::DELETE, "application/json"),
        };
        let request = self.request(method, path, Some(media_type), body.to_string().into())?;
        let response = self.wire.fetch(request, ANSWER_BYTES_MAX, Instant::now() + WRITE_TIMEOUT).await?;
        self.success(response)
    }

    /// Opens a watch; `path` has the query.
    pub async fn watch(&self, path: &str) -> Result<Stream, Error> {
        let request = self.request(Method::GET, path, None, Bytes::new())?;
        let response = self.wire.stream(request, Instant::now() + WATCH_HEAD_TIMEOUT).await?;
        let (head, mut stream) = response.into_parts();
        if head.status == StatusCode::OK {
            return Ok(stream);
        }
        // The first piece of an error's body has its message; more is not worth waiting for.
        let body = tokio::time::timeout(Duration::from_secs(1), stream.chunk()).await;
        let body = body.ok().and_then(Result::ok).flatten().unwrap_or_default();
        Err(self.failure(&Response::from_parts(head, body)))
    }

    /// Makes every later request use a fresh connection.
    pub fn forget_connections(&self) {
        self.wire.forget_connections();
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
