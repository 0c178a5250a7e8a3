//! A watch in protobuf, encoded from the JSON lines of the watch.

use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use mock_objects::protobuf;
use serde_json::Value;

use super::broken::Broken;
use super::watch::WatchBody;

/// Longest line of a watch in bytes: an event with the largest object.
const LINE_MAX_BYTES: usize = 8 << 20;

/// A watch whose JSON lines are sent as protobuf frames.
pub(crate) struct Framed {
    watch: WatchBody,
    /// The beginning of a JSON line that is not complete yet.
    rest: BytesMut,
}

impl Framed {
    pub fn of(watch: WatchBody) -> Self {
        Self { watch, rest: BytesMut::new() }
    }

    /// The next bytes of the watch; `None` at its clean end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            let bytes = match self.watch.poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => bytes,
                other => return other,
            };
            self.rest.extend_from_slice(&bytes);
            let mut frames = Vec::new();
            while let Some(end) = memchr::memchr(b'\n', &self.rest) {
                let line = self.rest.split_to(end + 1);
                let event = serde_json::from_slice(&line).ok();
                if let Some(frame) = event.and_then(|event: Value| protobuf::encode_event(&event).ok()) {
                    frames.extend(frame);
                } else {
                    // A line that a fault has damaged is no event in this encoding either, and must not damage other
                    // frames.
                    frames.extend_from_slice(&u32::try_from(line.len()).unwrap_or(0).to_be_bytes());
                    frames.extend_from_slice(&line);
                }
            }
            if self.rest.len() > LINE_MAX_BYTES {
                tracing::warn!(
                    bytes = self.rest.len(),
                    "a watch in protobuf ends: an event is longer than {LINE_MAX_BYTES} bytes"
                );
                return Poll::Ready(None);
            }
            if !frames.is_empty() {
                return Poll::Ready(Some(Ok(Bytes::from(frames))));
            }
        }
    }
}
