//! An HTTP answer that is being read, and the connection that it uses.
//!
//! If the answer is read to its end, the connection can be reused. If the answer is abandoned, the connection is closed
//! (HTTP/1.1) or the stream is reset (HTTP/2).

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::connection::{One, Two};
use super::trouble::{RETRY_AFTER_MAX, Refusal, Trouble};
use super::{Shared, broke, broke_two, within};
use crate::mistakes::Mistake;

/// Maximum number of bytes that are read from the body of a refusal. As a refusal, a proxy may send a long HTML page.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
const REFUSAL_DEADLINE: Duration = Duration::from_secs(2);

/// The head of an HTTP answer. The body of the answer is read later, in chunks.
pub struct Answer {
    pub status: u16,
    /// The wait that `Retry-After` states in seconds; zero without this header.
    pub retry_after: Duration,
    shared: Arc<Shared>,
    body: Option<Body>,
    lease: Option<Lease>,
    ended: bool,
    _place: Option<OwnedSemaphorePermit>,
}

pub(crate) enum Body {
    One(hyper::body::Incoming),
    Two(h2::RecvStream),
}

/// Permission to use a connection for one request.
pub(crate) enum Lease {
    /// A whole HTTP/1.1 connection; `None` after it was returned for reuse.
    One(Option<One>),
    /// A stream of an HTTP/2 connection.
    Two(Two),
}

/// A body and its connection that a client with a mistake never closes.
#[expect(dead_code, reason = "kept, never read: that is the mistake")]
pub(crate) struct Leaked(Option<Body>, Lease);

impl Lease {
    pub(crate) fn one(one: One) -> Self {
        Self::One(Some(one))
    }

    pub(crate) fn two(two: Two) -> Self {
        Self::Two(two)
    }

    /// Allows no new requests on the connection.
    pub(crate) fn retire(&mut self) {
        match self {
            Self::One(one) => drop(one.take()),
            Self::Two(two) => two.retire(),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Self::Two(two) = self {
            two.give_back();
        }
    }
}

impl Answer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        status: u16,
        headers: &http::HeaderMap,
        body: Body,
        lease: Lease,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let seconds = headers.get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let retry_after = Duration::from_secs(seconds.unwrap_or(0)).min(RETRY_AFTER_MAX);
        let (body, lease) = (Some(body), Some(lease));
        Self { status, retry_after, shared, body, lease, ended: false, _place: place }
    }

    /// The next bytes of the body; `None` at a clean end. Cancel safe.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, Trouble>> {
        loop {
            let next = match self.body.as_mut()? {
                Body::One(body) => match body.frame().await {
                    Some(Ok(frame)) => Some(Ok(frame.into_data().unwrap_or_default())),
                    Some(Err(error)) => Some(Err(broke(error))),
                    None => None,
                },
                Body::Two(body) => match body.data().await {
                    Some(Ok(data)) => {
                        // The flow-control window is free again once the data was taken.
                        let _ = body.flow_control().release_capacity(data.len());
                        Some(Ok(data))
                    }
                    Some(Err(error)) => Some(Err(broke_two(error))),
                    None => None,
                },
            };
            match next {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => return Some(Ok(data)),
                Some(Err(trouble)) => {
                    if !matches!(trouble, Trouble::Reset(_)) {
                        self.retire();
                    }
                    return Some(Err(trouble));
                }
                None => {
                    self.ended = true;
                    return None;
                }
            }
        }
    }

    /// Reads the whole body. Each chunk of the body must arrive within `patience`.
    pub async fn collect(&mut self, bytes_max: usize, patience: Option<Duration>) -> Result<Bytes, Trouble> {
        let mut whole = BytesMut::new();
        loop {
            let next = within(patience, async { self.chunk().await.transpose() }).await;
            if matches!(next, Err(Trouble::NoAnswer)) {
                self.retire();
            }
            let Some(chunk) = next? else { return Ok(whole.freeze()) };
            if whole.len() + chunk.len() > bytes_max {
                return Err(Trouble::Malformed(format!("more than {bytes_max} bytes")));
            }
            whole.extend_from_slice(&chunk);
        }
    }

    pub async fn refusal(mut self) -> Trouble {
        let body = self.collect(REFUSAL_BYTES_MAX, Some(REFUSAL_DEADLINE)).await.unwrap_or_default();
        let status = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Trouble::Refused(Refusal::new(self.status, self.retry_after, &status))
    }

    /// Allows no new requests on the connection. Other streams of the HTTP/2 connection continue.
    pub fn retire(&mut self) {
        if self.shared.mistakes.any(&[Mistake::WatchNotClosed, Mistake::ConnectionPerReconnect])
            && matches!(self.lease, Some(Lease::One(_)))
        {
            return;
        }
        if let Some(lease) = &mut self.lease {
            lease.retire();
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let (body, Some(mut lease)) = (self.body.take(), self.lease.take()) else { return };
        let mistakes = &self.shared.mistakes;
        let abandoned = !self.ended && mistakes.made(Mistake::WatchNotClosed);
        if abandoned || mistakes.made(Mistake::ConnectionPerReconnect) {
            self.shared.leak(Leaked(body, lease));
            return;
        }
        // The body is dropped first: on HTTP/2 that resets an unfinished stream, and needs the connection for it.
        drop(body);
        if let (true, Lease::One(one)) = (self.ended, &mut lease)
            && let Some(one) = one.take()
        {
            self.shared.idle(one);
        }
    }
}
