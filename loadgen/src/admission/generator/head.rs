//! The head of a review request as kube-apiserver writes it. The head is made once; only the length of the body differs
//! between calls.

use std::io::Write as _;
use std::time::Duration;

use crate::socket::http2;
use crate::wire::Endpoint;

/// The header `Accept` of client-go's REST client for JSON.
const ACCEPTED: &str = "application/json, */*";
/// The header `User-Agent` of kube-apiserver's webhook clients.
const AGENT: &str = "kube-apiserver-admission";
/// The header `Content-Type` of a review.
const JSON: &str = "application/json";

/// The header `Accept-Encoding`, which Go's transport sends by default.
const ENCODING: &str = "gzip";

/// The text of the head before and after the length of the body.
pub(super) struct Head {
    before: Vec<u8>,
    behind: Vec<u8>,
}

/// The fields of the head for HTTP/2.
pub(super) fn http2(endpoint: &Endpoint, path: &str, timeout: Duration) -> http2::Head {
    let path = format!("{}?timeout={}s", if path.is_empty() { &*endpoint.path } else { path }, timeout.as_secs());
    http2::Head::new([
        (":authority", &endpoint.authority),
        (":path", &path),
        ("user-agent", AGENT),
        ("accept", ACCEPTED),
        ("content-type", JSON),
        ("accept-encoding", ENCODING),
    ])
}

/// The decimal digits of a number, without an allocation.
pub(super) struct Digits {
    bytes: [u8; 20],
    length: usize,
}

impl Head {
    /// The head for this path; an empty path means the path of the endpoint.
    pub(super) fn new(endpoint: &Endpoint, path: &str, timeout: Duration) -> Self {
        let (authority, seconds) = (&endpoint.authority, timeout.as_secs());
        let path = if path.is_empty() { &*endpoint.path } else { path };
        let before = format!(
            "POST {path}?timeout={seconds}s HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {AGENT}\r\nContent-Length: "
        );
        let behind = format!("\r\nAccept: {ACCEPTED}\r\nContent-Type: {JSON}\r\nAccept-Encoding: {ENCODING}\r\n\r\n");
        Self { before: before.into_bytes(), behind: behind.into_bytes() }
    }

    /// Head and body of a request in the order in which they are sent.
    pub(super) fn around<'a>(&'a self, length: &'a Digits, body: [&'a [u8]; 3]) -> [&'a [u8]; 6] {
        let [first, uid, last] = body;
        [&self.before, &length.bytes[..length.length], &self.behind, first, uid, last]
    }
}

impl Digits {
    pub(super) fn of(number: usize) -> Self {
        let mut bytes = [0; 20];
        let mut rest = &mut bytes[..];
        // 20 digits hold every 64-bit number.
        let _ = write!(rest, "{number}");
        let length = 20 - rest.len();
        Self { bytes, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_decimal() {
        for number in [0, 7, 4096, usize::MAX] {
            let digits = Digits::of(number);
            assert_eq!(digits.bytes[..digits.length], *number.to_string().as_bytes());
        }
    }
}
