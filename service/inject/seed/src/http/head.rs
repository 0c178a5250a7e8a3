//! Parses the head of a request: method, path and the few headers that matter.
//!
//! A request with a body is refused, because no served path takes a body, and unread bytes must not be parsed as the
//! next request.

use std::str;

/// Largest head of a request, in bytes. Container runtimes send some hundred bytes, or some thousand with a token.
pub const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head<'h> {
    pub method: Method,
    pub path: &'h str,
    /// The path's query without `?`; empty if there is none.
    pub query: &'h str,
    pub range: Option<&'h str>,
    pub if_none_match: Option<&'h str>,
    /// Whether the client wants the connection to close after the answer.
    pub close: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The head is not HTTP/1, or has bytes that are not allowed.
    #[error("the request cannot be read")]
    Malformed,
    #[error("a request must not have a body")]
    Body,
}

/// The length of the request's head in `bytes`; `None` if the head is incomplete.
pub fn complete(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

pub fn parse(bytes: &[u8]) -> Result<Head<'_>, HeadError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        _ => return Err(HeadError::Malformed),
    }
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(HeadError::Malformed);
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if !path.starts_with('/') {
        return Err(HeadError::Malformed);
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => Method::Other,
    };
    let mut head = Head { method, path, query, range: None, if_none_match: None, close: version == 0 };
    let mut body = false;
    for header in request.headers.iter() {
        let value = || str::from_utf8(header.value).map(str::trim).map_err(|_| HeadError::Malformed);
        match header.name {
            name if name.eq_ignore_ascii_case("range") => head.range = Some(value()?),
            name if name.eq_ignore_ascii_case("if-none-match") => head.if_none_match = Some(value()?),
            name if name.eq_ignore_ascii_case("content-length") => body |= value()? != "0",
            name if name.eq_ignore_ascii_case("transfer-encoding") => body = true,
            name if name.eq_ignore_ascii_case("connection") => {
                head.close |= value()?.split(',').any(|word| word.trim().eq_ignore_ascii_case("close"));
            }
            _ => {}
        }
    }
    if body {
        return Err(HeadError::Body);
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_matters_is_read() {
        let bytes = b"GET /v2/a/blobs/x?ns=b HTTP/1.1\r\nHost: h\r\nRANGE: bytes=1-\r\nConnection: x, Close\r\n\r\n";
        assert_eq!(complete(bytes), Some(bytes.len()));
        let head = parse(bytes).unwrap();
        let (method, path, range) = (Method::Get, "/v2/a/blobs/x", Some("bytes=1-"));
        let expected = Head { method, path, query: "ns=b", range, if_none_match: None, close: true };
        assert_eq!(head, expected);
        assert!(parse(b"HEAD / HTTP/1.0\r\n\r\n").unwrap().close);
        assert_eq!(parse(b"PATCH / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").unwrap().method, Method::Other);
    }

    #[test]
    fn what_cannot_be_served_is_refused() {
        for (bytes, error) in [
            (&b"GET / HTTP/1.1\r\n"[..], HeadError::Malformed),
            (b"GET http://h/ HTTP/1.1\r\n\r\n", HeadError::Malformed),
            (b"GET * HTTP/1.1\r\n\r\n", HeadError::Malformed),
            (b"GET /\r\n\r\n", HeadError::Malformed),
            (b"GET / HTTP/2.0\r\n\r\n", HeadError::Malformed),
            (b"GET / HTTP/1.1\r\nRange: \xff\r\n\r\n", HeadError::Malformed),
            (b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", HeadError::Malformed),
            (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", HeadError::Body),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", HeadError::Body),
        ] {
            assert_eq!(parse(bytes), Err(error), "{}", String::from_utf8_lossy(bytes));
        }
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(parse(many.as_bytes()), Err(HeadError::Malformed));
    }

    proptest! {
        /// No bytes cause a panic, and every parsed head has a path.
        #[test]
        fn noise(bytes in prop::collection::vec(any::<u8>(), 0..200), path in "[ -~]{0,40}") {
            let _ = parse(&bytes);
            if let Ok(head) = parse(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()) {
                prop_assert!(head.path.starts_with('/'));
            }
        }
    }
}
