//! Answers for clients that accept protobuf and nothing else that is made here.
//!
//! Owns turning the JSON of an answer into protobuf at the very end, so that everything before speaks JSON alone: whoever accepts both gets
//! JSON. Custom resources have no protobuf but for their metadata, as on a real server.

use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, header};
use mock_objects::protobuf::{self, MEDIA_TYPE};
use serde_json::Value;

use super::answer::Answer;
use super::body::Body;
use super::broken::Broken;
use super::watch::WatchBody;

/// Longest line of a watch: the largest object in its event.
const LINE_MAX_BYTES: usize = 8 << 20;

/// Lets a request that accepts only protobuf accept JSON instead; true when it was one.
pub(crate) fn take_wish<B>(request: &mut Request<B>) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let media = |part: &str| part.split(';').next().unwrap_or_default().trim().to_owned();
    let takes = |wanted: &[&str]| accept.split(',').any(|part| wanted.contains(&media(part).as_str()));
    if takes(&["application/json", "application/*", "*/*"]) || !takes(&[MEDIA_TYPE]) {
        return false;
    }
    let json = accept.replace(MEDIA_TYPE, "application/json");
    let Ok(json) = HeaderValue::from_str(&json) else { return false };
    request.headers_mut().insert(header::ACCEPT, json);
    true
}

/// The same answer in protobuf; as it is where there is none.
pub(crate) fn answer(mut answer: Answer) -> Answer {
    if !answer.content_type.starts_with("application/json") || answer.other_content_type.is_some() {
        return answer;
    }
    let json = match answer.body {
        Body::Watch(watch) => {
            answer.body = Body::Protobuf(Box::new(Framed { watch: *watch, rest: BytesMut::new() }));
            answer.other_content_type = Some(format!("{MEDIA_TYPE};stream=watch"));
            return answer;
        }
        Body::Full(Some(bytes)) => bytes,
        Body::List(mut list) => {
            let mut whole = BytesMut::new();
            while let Some(piece) = list.next() {
                whole.extend_from_slice(&piece);
            }
            whole.freeze()
        }
        other => return Answer { body: other, ..answer },
    };
    let encoded = serde_json::from_slice(&json).ok().and_then(|value: Value| protobuf::encode(&value).ok());
    match encoded {
        Some(encoded) => Answer { body: Bytes::from(encoded).into(), content_type: MEDIA_TYPE, ..answer },
        None => Answer { body: json.into(), ..answer },
    }
}

/// A watch whose lines go out as frames.
pub(crate) struct Framed {
    watch: WatchBody,
    /// The beginning of a line.
    rest: BytesMut,
}

impl Framed {
    /// The next bytes, `None` at a clean end.
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
                match event.and_then(|event: Value| protobuf::encode_event(&event).ok()) {
                    Some(frame) => frames.extend(frame),
                    // What a fault has made of a line is no event in this encoding either.
                    None => frames.extend_from_slice(&line),
                }
            }
            if self.rest.len() > LINE_MAX_BYTES {
                return Poll::Ready(None);
            }
            if !frames.is_empty() {
                return Poll::Ready(Some(Ok(Bytes::from(frames))));
            }
        }
    }
}
