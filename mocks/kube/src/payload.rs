//! The body of a request, which may have been read before its verb reads it.
//!
//! Owns reading within the limits of size and time.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use mock_objects::status::Failure;

use super::config::Limits;

/// A body: still in the connection, or already read.
#[derive(Debug)]
pub(crate) enum Payload {
    Incoming(Incoming),
    Read(Result<Bytes, Box<Failure>>),
}

impl From<Incoming> for Payload {
    fn from(body: Incoming) -> Self {
        Self::Incoming(body)
    }
}

impl Payload {
    /// The whole body.
    pub async fn read(self, limits: &Limits) -> Result<Bytes, Failure> {
        let body = match self {
            Self::Incoming(body) => body,
            Self::Read(read) => return read.map_err(|failure| *failure),
        };
        let collected = tokio::time::timeout(limits.body_timeout, Limited::new(body, limits.body_max_bytes).collect());
        match collected.await {
            Err(_) => Err(Failure::timeout("the body of the request did not arrive in time")),
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                Err(Failure::too_large(format!("limit is {}", limits.body_max_bytes)))
            }
            Ok(Err(error)) => Err(Failure::bad_request(format!("the body of the request could not be read: {error}"))),
        }
    }
}
