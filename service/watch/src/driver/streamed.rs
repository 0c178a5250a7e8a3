//! A streamed list (`sendInitialEvents=true`, KEP-3157): one watch request returns the list and the events after it. So
//! the server never builds one answer with all objects.
//!
//! This module owns the query and the time limit of a streamed list. If a server does not support streamed lists, or
//! does not mark the end of the list, pages are requested instead.

use std::sync::Arc;
use std::time::Duration;

use service_core::kube::{self, Client};
use service_core::wire::{self, Stream};
use tokio::time::{Instant, timeout_at};

use crate::decode::{Lines, TooLong};
use crate::diagnostics::Diagnostics;
use crate::machine::{Listing, Streamed};
use crate::object::Kind;
use crate::source::{Form, Source, encode};
use crate::store::Store;

/// Longest time without a byte before a streamed list is complete: the same limit as for a page.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Longest time until a streamed list is complete. A server that never sends the final bookmark may send events for
/// ever.
const LIST_MAX: Duration = Duration::from_mins(2);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("the stream broke: {0}")]
    Wire(#[from] wire::Error),
    /// A line of the stream is longer than the limit.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("the server has not reached the version asked for")]
    Ahead,
    /// The server's answer is not a list.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// Whether the server may never support streamed lists, so that lists in pages should be requested. The result is
    /// false for an error that a list in pages would meet too.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::Request(error) => error.status().is_some_and(|status| {
                // 422: the feature is off (`sendInitialEvents is forbidden`); 400: the parameters are unknown.
                matches!(status.as_u16(), 400 | 422)
            }),
            Self::Failed(_) | Self::TooLong(_) => true,
            Self::Wire(_) | Self::Ahead => false,
        }
    }

    /// The time that the server tells the client to wait before a retry.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Request(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Whether the server has not reached the requested resource version.
    pub fn is_ahead(&self) -> bool {
        matches!(self, Self::Ahead) || matches!(self, Self::Request(error) if error.is_ahead())
    }
}

/// Opens a watch of `source`: whole objects or metadata.
pub async fn open(client: &Client, source: &Source, query: &str) -> Result<Stream, kube::Error> {
    let path = source.path_with(query);
    match source.form {
        Form::Whole => client.watch(&path).await,
        Form::Metadata => client.metadata_watch(&path).await,
    }
}

/// Returns the complete list, its open stream, and the bytes that were already read from the stream.
pub async fn collect<K: Kind>(
    source: &Source,
    client: &Arc<Client>,
    store: &Store<K>,
    diagnostics: &Diagnostics<K>,
    at_least: Option<&str>,
    server_timeout: Duration,
) -> Result<(Listing<K>, Stream, Lines), Error> {
    let from = at_least.map(|version| format!("&resourceVersion={}", encode(version))).unwrap_or_default();
    let query = format!(
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds={}{from}",
        server_timeout.as_secs()
    );
    let mut stream = open(client, source, &query).await?;
    let (mut listing, mut lines) = (Listing::default(), Lines::default());
    let end = Instant::now() + LIST_MAX;
    loop {
        let late = |_| Error::Failed("the list has no end: no bookmark says where it is complete".into());
        let chunk = timeout_at(end.min(Instant::now() + SILENCE_MAX), stream.chunk()).await.map_err(late)??;
        let Some(chunk) = chunk else {
            return Err(Error::Failed("the stream ended before the list was complete".into()));
        };
        lines.push(&chunk);
        diagnostics.progress();
        while let Some(line) = lines.next_line() {
            match listing.line(&line?, store) {
                Streamed::More => {}
                Streamed::Complete => return Ok((listing, stream, lines)),
                Streamed::Ahead => return Err(Error::Ahead),
                Streamed::Failed(why) => return Err(Error::Failed(why)),
            }
        }
    }
}
