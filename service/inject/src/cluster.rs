//! Requests of an injection to the API server. Failed requests are repeated for a long time; refused requests are
//! reported at once.
//!
//! This module decides which requests are repeated and for how long. Callers interpret the answers.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use rand::RngExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::explain;
use super::metadata::{Metadata, Partial};
use super::objects::Names;
use service_core::kube::{self, Client, LIST_PAGE, Write};

/// Time for which an API server may fail or be silent before an injection stops. The restart of a control plane takes a
/// minute or two.
pub const PATIENCE: Duration = Duration::from_mins(5);
/// Time limit for applying a large object, because a slow control plane needs seconds for a megabyte.
pub const APPLY_TIME: Duration = Duration::from_secs(30);
/// First delay between two attempts of a request; the delay doubles each time.
const BACKOFF: Duration = Duration::from_millis(250);
/// Longest delay between two attempts of a request, even if the server asks for a longer delay.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Largest object that is read, in bytes: a `ConfigMap` with a megabyte in base64, and some other fields.
const OBJECT_BYTES_MAX: usize = 4 << 20;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused the request or did not answer.
    #[error("failed to {doing}: {source}{}", explain::advice(source))]
    Api {
        doing: String,
        /// The error of the last attempt.
        source: kube::Error,
    },
    #[error("failed to {doing}: the API server answered with something else than an object: {source}")]
    Answer { doing: String, source: serde_json::Error },
    /// A problem that a person must solve.
    #[error("{0}")]
    Refused(String),
    #[error("the payload's file: {0}")]
    File(#[from] std::io::Error),
}

impl Error {
    /// The status of the API server's answer; `None` if there was no answer.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Api { source, .. } => source.status(),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct List<T> {
    #[serde(default)]
    metadata: ListMetadata,
    /// The items of a list; `None` for an empty list, because an API server writes `null` if only metadata is
    /// requested.
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMetadata {
    r#continue: String,
}

/// The API server client of one injection.
pub struct Cluster {
    pub client: Client,
    pub names: Names,
}

impl Cluster {
    /// Repeats a request until it succeeds, or is refused for a reason that another attempt would not change.
    pub async fn patiently<T, F>(&self, doing: &str, ask: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        let (until, mut backoff) = (Instant::now() + PATIENCE, BACKOFF);
        loop {
            let source = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(source) => source,
            };
            let drawn = backoff.mul_f64(rand::rng().random_range(0.5..1.0));
            let wait = source.retry_after().unwrap_or(drawn).min(WAIT_MAX);
            if !is_temporary(&source) || Instant::now() + wait > until {
                return Err(Error::Api { doing: doing.to_owned(), source });
            }
            sleep(wait).await;
            backoff = (backoff * 2).min(WAIT_MAX);
        }
    }

    /// Reads an object; `None` if the object does not exist.
    pub async fn read(&self, path: &str) -> Result<Option<Value>, Error> {
        let doing = format!("read {path}");
        let read = || self.client.read_at_most(path, OBJECT_BYTES_MAX, Instant::now() + APPLY_TIME);
        match self.patiently(&doing, read).await {
            Ok(bytes) => object(&doing, &bytes).map(Some),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies an object; returns its new metadata.
    pub async fn apply(&self, resource: &str, name: &str, body: Bytes) -> Result<Metadata, Error> {
        let (doing, path) = (format!("apply {resource}/{name}"), self.names.applied(resource, name));
        let bytes =
            self.patiently(&doing, || self.client.apply(&path, body.clone(), Instant::now() + APPLY_TIME)).await?;
        object::<Partial>(&doing, &bytes).map(|partial| partial.metadata)
    }

    /// Deletes an object, or a collection if `path` has a query; returns whether the object existed. Dependent objects
    /// are deleted in the background.
    pub async fn delete(&self, path: &str) -> Result<bool, Error> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        let deleted =
            self.patiently(&format!("delete {path}"), || self.client.write(Write::Delete, path, &options)).await;
        match deleted {
            Ok(_) => Ok(true),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The metadata of all objects in a list, which is read in pages. `path` includes a query.
    pub async fn metadata(&self, path: &str) -> Result<Vec<Metadata>, Error> {
        let partials: Vec<Partial> = self.pages(path, |page| self.client_metadata(page)).await?;
        Ok(partials.into_iter().map(|partial| partial.metadata).collect())
    }

    /// All objects in a list, parsed as `T`; the list is read in pages. `path` includes a query.
    pub async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, Error> {
        self.pages(path, |page| self.client_page(page)).await
    }

    async fn client_metadata(&self, path: String) -> Result<Bytes, kube::Error> {
        self.client.whole_page(&path, true).await
    }

    async fn client_page(&self, path: String) -> Result<Bytes, kube::Error> {
        self.client.whole_page(&path, false).await
    }

    /// Reads the pages of a list. If the continue token has expired, the list starts again; repeated objects do no
    /// harm.
    async fn pages<T: DeserializeOwned, F>(&self, path: &str, ask: impl Fn(String) -> F) -> Result<Vec<T>, Error>
    where
        F: Future<Output = Result<Bytes, kube::Error>>,
    {
        let doing = format!("list {path}");
        let (mut items, mut token) = (Vec::new(), String::new());
        loop {
            let mut page = format!("{path}&limit={LIST_PAGE}");
            if !token.is_empty() {
                page.push_str("&continue=");
                page.extend(percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC));
            }
            let bytes = match self.patiently(&doing, || ask(page.clone())).await {
                Err(error) if error.status() == Some(StatusCode::GONE) && !token.is_empty() => {
                    items.clear();
                    token.clear();
                    continue;
                }
                answer => answer?,
            };
            let list: List<T> = object(&doing, &bytes)?;
            items.extend(list.items.unwrap_or_default());
            token = list.metadata.r#continue;
            if token.is_empty() {
                return Ok(items);
            }
        }
    }
}

/// Whether another attempt may succeed: there was no answer, too many requests, a failing server, or a conflict with
/// another write.
pub fn is_temporary(error: &kube::Error) -> bool {
    match error {
        kube::Error::Wire(error) => !error.is_certificate(),
        kube::Error::Status { status, message, .. } => match *status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => true,
            // A field that another writer owns stays theirs.
            StatusCode::CONFLICT => !message.as_ref().is_some_and(|text| text.starts_with("Apply failed with")),
            // A webhook that cannot be called answers 500 as well, and may come back.
            status => status.is_server_error(),
        },
        kube::Error::Request(_) => false,
    }
}

fn object<T: DeserializeOwned>(doing: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|source| Error::Answer { doing: doing.to_owned(), source })
}
