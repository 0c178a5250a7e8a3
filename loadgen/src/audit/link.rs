//! The connections of the audit, each with one request after another over HTTP/1.1 with TLS. Bodies of lists are read
//! page by page, those of watches as a stream.
//!
//! Owns deadlines and size limits of answers. This module knows only the URL paths of lists and watches; other modules
//! interpret answers.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::task::JoinSet;

use super::Error;
use super::event::{self, Object, Wanted};
use crate::churn::Api;
use crate::failure::chain;
use crate::wire::Endpoint;

/// The deadline of an answer: kube-apiserver ends a request that is not a watch after a minute.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);
/// The number of objects on a page of a list. If a page is too large, it is requested again with fewer objects.
const PAGE_OBJECTS: usize = 500;
/// Maximum number of bytes of a page: 500 objects of 64 KiB.
const PAGE_BYTES_MAX: usize = 32 << 20;
const ERROR_BYTES_MAX: usize = 64 << 10;
/// How often a list is started again if its pages expire.
const LIST_TRIES: u32 = 3;

/// The connection settings of the audit.
#[derive(Debug, Clone)]
pub(super) struct Link {
    endpoint: Endpoint,
    headers: HeaderMap,
    /// The URL path of all objects of the resource.
    path: String,
    wanted: Wanted,
}

#[derive(Debug)]
pub(super) struct List {
    pub resource_version: String,
    pub objects: Vec<Object>,
}

/// Why a request got no valid answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The answer has an error status.
    #[error("HTTP {}: {message}", status.as_u16())]
    Status { status: StatusCode, message: String },
    /// The page is larger than allowed.
    #[error("a page is larger than {} MiB", PAGE_BYTES_MAX >> 20)]
    TooLarge,
    /// The connection failed, or the answer is invalid.
    #[error("{0}")]
    Wire(String),
}

/// A connection to the control plane; dropping the value closes it.
pub(super) struct Session {
    sender: SendRequest<Empty<Bytes>>,
    // Drives the connection; owned, so that it ends with the session.
    _driver: JoinSet<()>,
}

impl Link {
    pub(super) fn new(api: &Api, collection: &str, wanted: Wanted) -> Result<Self, Error> {
        let config = |problem: String| Error::Config { problem };
        let endpoint = Endpoint::new(&api.url, "", &api.ca_pem, b"http/1.1").map_err(|e| config(e.to_string()))?;
        let bad = |what: &str| config(format!("the {what} has characters that no HTTP header may have"));
        let mut token = HeaderValue::from_str(&format!("Bearer {}", api.token.trim())).map_err(|_| bad("token"))?;
        token.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(&endpoint.authority).map_err(|_| bad("address"))?);
        headers.insert(USER_AGENT, HeaderValue::from_static("longhaul-audit"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(AUTHORIZATION, token);
        let path = format!("{}{collection}", endpoint.path.trim_end_matches('/'));
        Ok(Self { endpoint, headers, path, wanted })
    }

    /// The properties that are kept of each object besides its identity.
    pub(super) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    pub(super) async fn open(&self) -> Result<Session, Failed> {
        let stream = self.endpoint.connect().await.map_err(|failure| Failed::Wire(failure.text))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| Failed::Wire(chain(&error)))?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The waiter for the answer gets its error.
            let _ = connection.await;
        });
        Ok(Session { sender, _driver: driver })
    }

    /// The head of the answer to a watch. The session must live as long as the answer's body is read.
    pub(super) async fn watch(
        &self,
        session: &mut Session,
        resource_version: &str,
        timeout_s: u64,
    ) -> Result<Incoming, Failed> {
        let version = encode(resource_version);
        let query = format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={timeout_s}");
        Ok(self.get(session, &query).await?.into_body())
    }

    /// All objects at one version, page by page, read from etcd and not from a cache that may lag.
    pub(super) async fn list(&self) -> Result<List, Failed> {
        let mut session = self.open().await?;
        for _ in 1..LIST_TRIES {
            match self.pages(&mut session).await {
                // The version of the first page was compacted before the last one was read.
                Err(Failed::Status { status: StatusCode::GONE, .. }) => session = self.open().await?,
                outcome => return outcome,
            }
        }
        self.pages(&mut session).await
    }

    /// The version of a list without its objects, for a reader that wants only later changes.
    pub(super) async fn newest(&self) -> Result<List, Failed> {
        let mut session = self.open().await?;
        let page = self.page(&mut session, "limit=1").await?;
        Ok(List { resource_version: page.resource_version, objects: Vec::new() })
    }

    async fn pages(&self, session: &mut Session) -> Result<List, Failed> {
        let mut list = List { resource_version: String::new(), objects: Vec::new() };
        let (mut next, mut limit) = (None::<String>, PAGE_OBJECTS);
        loop {
            let query = match &next {
                Some(token) => format!("limit={limit}&continue={}", encode(token)),
                None => format!("limit={limit}"),
            };
            let page = match self.page(session, &query).await {
                Err(Failed::TooLarge) if limit > 1 => {
                    limit = (limit / 8).max(1);
                    // The rest of the page is not read, so the connection cannot be used again.
                    *session = self.open().await?;
                    continue;
                }
                outcome => outcome?,
            };
            list.resource_version = page.resource_version;
            list.objects.extend(page.objects);
            next = page.next;
            if next.is_none() {
                return Ok(list);
            }
        }
    }

    async fn page(&self, session: &mut Session, query: &str) -> Result<event::Page, Failed> {
        let response = self.get(session, query).await?;
        let body = tokio::time::timeout(ANSWER_LIMIT, Limited::new(response.into_body(), PAGE_BYTES_MAX).collect());
        match body.await {
            Ok(Ok(body)) => {
                event::page(&body.to_bytes(), self.wanted()).map_err(|error| Failed::Wire(error.to_string()))
            }
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Failed::TooLarge),
            Ok(Err(error)) => Err(Failed::Wire(format!("a page broke off: {}", chain(&*error)))),
            Err(_) => Err(Failed::Wire(format!("a page did not end within {} s", ANSWER_LIMIT.as_secs()))),
        }
    }

    /// The head of a successful answer.
    async fn get(&self, session: &mut Session, query: &str) -> Result<Response<Incoming>, Failed> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() =
            format!("{}?{query}", self.path).parse().map_err(|error| Failed::Wire(format!("no path: {error}")))?;
        *request.headers_mut() = self.headers.clone();
        let exchange = async {
            let broken = |error: hyper::Error| Failed::Wire(format!("the connection broke: {}", chain(&error)));
            session.sender.ready().await.map_err(broken)?;
            let response = session.sender.send_request(request).await.map_err(broken)?;
            let status = response.status();
            if status == StatusCode::OK {
                return Ok(response);
            }
            let body = Limited::new(response.into_body(), ERROR_BYTES_MAX).collect().await;
            let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            Err(Failed::Status { status, message: message(&body) })
        };
        let late = || Failed::Wire(format!("no answer within {} s", ANSWER_LIMIT.as_secs()));
        tokio::time::timeout(ANSWER_LIMIT, exchange).await.unwrap_or_else(|_| Err(late()))
    }
}

/// The message in a `Status`, or the beginning of any other body.
fn message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Status {
        message: String,
    }
    serde_json::from_slice::<Status>(body)
        .map_or_else(|_| String::from_utf8_lossy(&body[..body.len().min(160)]).into_owned(), |status| status.message)
}

/// Encodes a version or token for a URL. A version or token is opaque and may contain any character.
fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
