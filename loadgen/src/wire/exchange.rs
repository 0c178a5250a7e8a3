//! One request and its answer on an open connection.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::Answer;
use crate::failure::{Awaited, Failure, MOST_BODY_BYTES, chain, timed_out};

pub(crate) type Body = Full<Bytes>;

/// The progress of a call, so that a timeout can name the phase in which the call was.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU8);

impl Progress {
    const CONNECTED: u8 = 1;
    const ANSWERING: u8 = 2;

    pub(super) fn connected(&self) {
        self.0.store(Self::CONNECTED, Ordering::Relaxed);
    }

    /// The failure of a call that was cut off at its deadline.
    pub(crate) fn timeout(&self, limit: Duration) -> Failure {
        timed_out(
            limit,
            match self.0.load(Ordering::Relaxed) {
                Self::CONNECTED => Awaited::Head,
                Self::ANSWERING => Awaited::Body,
                _ => Awaited::Connection,
            },
        )
    }
}

/// Reads the body of an answer, up to its maximum length.
pub(super) async fn read(response: Response<Incoming>, progress: &Progress) -> Result<Answer, Failure> {
    progress.0.store(Progress::ANSWERING, Ordering::Relaxed);
    let (head, body) = response.into_parts();
    let text_of = |name| head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let announced = text_of(CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok());
    if let Some(bytes) = announced.filter(|&bytes| bytes > MOST_BODY_BYTES as u64) {
        return Err(Failure::body_too_large(Some(bytes)));
    }
    let content_type = text_of(CONTENT_TYPE);
    match Limited::new(body, MOST_BODY_BYTES).collect().await {
        Ok(body) => Ok(Answer { status: head.status, content_type, body: body.to_bytes() }),
        Err(error) if error.is::<LengthLimitError>() => Err(Failure::body_too_large(None)),
        Err(error) => Err(Failure::http(format!("the body broke off: {}", chain(&*error)))),
    }
}

/// The failure of an exchange that ended before the head of an answer.
pub(super) fn broken(error: &hyper::Error) -> Failure {
    Failure::http(format!("the connection broke before an answer: {}", chain(error)))
}
