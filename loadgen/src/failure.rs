//! Calls that got no valid answer, and the classes by which such calls are counted.

use std::time::Duration;

/// Maximum number of bytes of an answer's body, far more than any requested answer: a patch, or an object of at most
/// 1.5 MiB.
pub(crate) const MOST_BODY_BYTES: usize = 4 << 20;

/// Why a call got no valid answer.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub class: Class,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    HttpError,
    Timeout,
    Connect,
    Tls,
    InvalidResponse,
}

impl Class {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::HttpError => "http error",
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::InvalidResponse => "invalid response",
        }
    }
}

impl Failure {
    pub(crate) fn invalid(text: String) -> Self {
        Self { class: Class::InvalidResponse, text }
    }

    /// The failure for a body above [`MOST_BODY_BYTES`], with its announced length.
    pub(crate) fn body_too_large(announced: Option<u64>) -> Self {
        let announced = announced.map(|bytes| format!(" (Content-Length: {bytes})")).unwrap_or_default();
        Self::invalid(format!("the body is larger than {} MiB{announced}", MOST_BODY_BYTES >> 20))
    }

    /// The failure for a compressed body whose text is too large, with its compressed length.
    pub(crate) fn unpacked_too_large(packed: usize) -> Self {
        let most = MOST_BODY_BYTES >> 20;
        Self::invalid(format!("the body is larger than {most} MiB when it is unpacked (from {packed} bytes)"))
    }

    pub(crate) fn http(text: String) -> Self {
        Self { class: Class::HttpError, text }
    }
}

pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}

/// The phase of a call that was not complete when the call timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    Connection,
    Head,
    /// The server's permission to send more of the request (flow control of HTTP/2).
    Window,
    Body,
}

/// The failure of a call that timed out.
pub(crate) fn timed_out(limit: Duration, awaited: Awaited) -> Failure {
    let waiting = match awaited {
        Awaited::Connection => "no connection was ready",
        Awaited::Head => "the request was on its way, no status line came",
        Awaited::Window => "HTTP/2's flow control let only a part of the request through",
        Awaited::Body => "the status line came, the body did not end",
    };
    Failure { class: Class::Timeout, text: format!("no complete answer within {} s: {waiting}", limit.as_secs()) }
}
