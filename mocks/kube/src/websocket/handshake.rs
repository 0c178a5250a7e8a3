//! The WebSocket handshake, with the rules, the order of checks and the messages of `golang.org/x/net/websocket`.
//!
//! The handshake differs from RFC 6455 in two points: the server requires an `Origin`, and accepts any key.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::{first, says_upgrade};
use crate::body::Body;

/// The GUID of RFC 6455, section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const VERSION: &str = "13";

/// The answer to a client whose handshake is accepted.
pub(super) struct Accepted {
    accept: HeaderValue,
    protocol: Option<HeaderValue>,
}

/// The answer to a client whose handshake is refused; the connection is closed after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    pub status: StatusCode,
    words: &'static str,
}

const fn bad(words: &'static str) -> Refused {
    Refused { status: StatusCode::BAD_REQUEST, words }
}

const NOT_WEBSOCKET: Refused = bad("not websocket protocol");
const NO_KEY: Refused = bad("mismatch challenge/response");
const OTHER_VERSION: Refused = bad("missing or bad WebSocket Version");
/// The error for a request with several subprotocols, among which the server does not choose.
const MANY_PROTOCOLS: Refused = bad("");
const NO_ORIGIN: Refused = Refused { status: StatusCode::FORBIDDEN, words: "" };

impl Accepted {
    pub fn put(self, response: &mut Response<Body>) {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(protocol) = self.protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
    }
}

impl Refused {
    pub fn put(self, response: &mut Response<Body>) {
        *response.body_mut() = Body::from(Bytes::from_static(self.words.as_bytes()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        if self == OTHER_VERSION {
            response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        }
    }
}

pub(super) fn shake(headers: &HeaderMap) -> Result<Accepted, Refused> {
    // Any `Connection` header makes the request a WebSocket's; the handshake checks the first one.
    if !says_upgrade(first(headers, header::CONNECTION)) {
        return Err(NOT_WEBSOCKET);
    }
    let key = first(headers, header::SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err(NO_KEY);
    }
    if first(headers, header::SEC_WEBSOCKET_VERSION) != VERSION {
        return Err(OTHER_VERSION);
    }
    if !mock_cel::is_uri(first(headers, header::ORIGIN)) {
        return Err(NO_ORIGIN);
    }
    let protocol = first(headers, header::SEC_WEBSOCKET_PROTOCOL).trim();
    if protocol.contains(',') {
        return Err(MANY_PROTOCOLS);
    }
    let protocol = Some(protocol).filter(|protocol| !protocol.is_empty());
    Ok(Accepted {
        accept: HeaderValue::from_str(&accept(key)).map_err(|_| NO_KEY)?,
        protocol: protocol.map(HeaderValue::from_str).transpose().map_err(|_| MANY_PROTOCOLS)?,
    })
}

/// The value of `Sec-WebSocket-Accept` for a key.
fn accept(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), GUID].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_standard_is_answered_with_its_proof() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
