//! Common code of the tests' API servers: pages of lists, watch streams, and faults of streams.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::Value;
use tokio::sync::watch;

use super::{Body, full, status};

#[derive(Debug, Clone)]
pub enum Fault {
    /// The request gets this status, with Retry-After in seconds.
    Status(u16, Option<u64>),
    /// Status 200, then this line; the stream stays open.
    LineThenHold(String),
    /// Status 200, then nothing for ever.
    Silence,
    /// The request is never answered.
    Swallow,
    /// Status 200, then the stream ends at once.
    Empty,
    /// Status 200 and this many events; then the connection breaks in the middle of a line.
    Torn(usize),
    /// Status 200 and all events except deletions.
    WithoutDeletions,
}

/// A log of events that clients can watch.
pub trait Log: Send + Sync + 'static {
    /// The events after the version `from`, the oldest first, each with its version.
    fn pending(&self, from: u64) -> Vec<(u64, String)>;

    fn lag(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether all watches end.
    fn is_down(&self) -> bool {
        false
    }
}

pub fn pairs(query: Option<&str>) -> BTreeMap<String, String> {
    let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// A page of a list, and its continue token, which is the last name of the page. Tests never write while they list in
/// pages, so the page is right.
pub fn page<'w>(objects: &'w BTreeMap<String, Value>, query: &BTreeMap<String, String>) -> (Vec<&'w Value>, String) {
    let limit = query.get("limit").and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0);
    let after = query.get("continue").map(|token| token.replace("%2F", "/").replace("%2D", "-")).unwrap_or_default();
    let mut rest = objects.iter().filter(|(key, _)| **key > after);
    let page: Vec<_> = rest.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
    let token = if rest.next().is_some() { page.last().unwrap().0.clone() } else { String::new() };
    (page.into_iter().map(|(_, object)| object).collect(), token)
}

/// The answer to a watch that starts after version `from`.
pub async fn open(log: impl Log, moved: &watch::Sender<u64>, from: u64, fault: Option<Fault>) -> Response<Body> {
    let hold = |first: Vec<Bytes>| {
        let chunks = stream::iter(first.into_iter().map(|chunk| Ok(Frame::data(chunk)))).chain(stream::pending());
        Response::new(BodyExt::boxed(StreamBody::new(chunks)))
    };
    match fault {
        Some(Fault::Status(code, retry_after)) => {
            let mut answer = status(code, r#"{"kind":"Status","message":"scripted"}"#);
            if let Some(seconds) = retry_after {
                answer.headers_mut().insert("retry-after", seconds.into());
            }
            answer
        }
        Some(Fault::LineThenHold(line)) => hold(vec![(line + "\n").into()]),
        Some(Fault::Silence) => hold(vec![]),
        Some(Fault::Swallow) => std::future::pending().await,
        // One empty DATA frame, as servers end HTTP/2 streams; HTTP/1.1 has no such thing and leaves it out.
        Some(Fault::Empty) => {
            let chunks = stream::iter([Ok(Frame::data(Bytes::new()))]);
            Response::new(BodyExt::boxed(StreamBody::new(chunks)))
        }
        Some(Fault::Torn(events)) => {
            let lines: String = log.pending(from).into_iter().take(events).map(|(_, line)| line + "\n").collect();
            Response::new(full(lines + r#"{"type":"ADDED","obj"#))
        }
        Some(Fault::WithoutDeletions) => events(log, moved, from, true),
        None => events(log, moved, from, false),
    }
}

/// A correct stream of events, or a stream without deletions if `lossy`. Each event is sent in two chunks.
fn events(log: impl Log, moved: &watch::Sender<u64>, from: u64, lossy: bool) -> Response<Body> {
    let state = (log, moved.subscribe(), from, VecDeque::<Bytes>::new());
    let chunks = stream::unfold(state, move |(log, mut moved, mut from, mut ready)| async move {
        while ready.is_empty() {
            moved.borrow_and_update();
            if log.is_down() {
                return None;
            }
            // A sleep of zero would take a millisecond.
            if !log.lag().is_zero() {
                tokio::time::sleep(log.lag()).await;
            }
            for (version, line) in log.pending(from) {
                from = version;
                if !(lossy && line.contains(r#""type":"DELETED""#)) {
                    let line = Bytes::from(line + "\n");
                    ready.extend([line.slice(..line.len() / 2), line.slice(line.len() / 2..)]);
                }
            }
            if ready.is_empty() {
                moved.changed().await.ok()?;
            }
        }
        let chunk = ready.pop_front()?;
        Some((Ok(Frame::data(chunk)), (log, moved, from, ready)))
    });
    Response::new(BodyExt::boxed(StreamBody::new(chunks)))
}
