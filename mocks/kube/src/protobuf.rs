//! Answers for clients that accept only protobuf.
//!
//! Converts a finished JSON answer into protobuf, so that all other code handles only JSON. Clients that accept JSON
//! and protobuf get JSON. As in a real server, protobuf answers about custom resources can contain only metadata.

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, header};
use mock_objects::protobuf::{self, MEDIA_TYPE};
use serde_json::Value;

use super::answer::Answer;
use super::body::Body;
use super::framed::Framed;

/// Changes the header `Accept` of a request that accepts only protobuf to JSON; returns whether the header was changed.
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

/// Converts an answer into protobuf; an answer that protobuf cannot represent stays unchanged.
pub(crate) fn answer(mut answer: Answer) -> Answer {
    if !answer.content_type.starts_with("application/json") || answer.other_content_type.is_some() {
        return answer;
    }
    let json = match answer.body {
        Body::Watch(watch) => {
            answer.body = Body::Protobuf(Box::new(Framed::of(*watch)));
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
