//! One request and its answer on a connection that exists.

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::{Answer, Failure, chain};

/// What requests carry.
pub(crate) type Body = Full<Bytes>;

/// No answer that this crate asks for comes near it: an admission patch or one object of at most 1.5 MiB.
const MOST_BODY_BYTES: usize = 4 << 20;

/// Reads the answer's body, up to the cap.
pub(super) async fn read(response: Response<Incoming>) -> Result<Answer, Failure> {
    let (head, body) = response.into_parts();
    let text_of = |name| head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let too_large =
        |announced: &str| Failure::invalid(format!("the body is larger than {} MiB{announced}", MOST_BODY_BYTES >> 20));
    let announced = text_of(CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok());
    if let Some(bytes) = announced.filter(|&bytes| bytes > MOST_BODY_BYTES as u64) {
        return Err(too_large(&format!(" (Content-Length: {bytes})")));
    }
    let content_type = text_of(CONTENT_TYPE);
    match Limited::new(body, MOST_BODY_BYTES).collect().await {
        Ok(body) => Ok(Answer { status: head.status, content_type, body: body.to_bytes() }),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large("")),
        Err(error) => Err(Failure::http(format!("the body broke off: {}", chain(&*error)))),
    }
}

/// The failure of an exchange that broke off before an answer's head.
pub(super) fn broken(error: &hyper::Error) -> Failure {
    Failure::http(format!("the connection broke before an answer: {}", chain(error)))
}
