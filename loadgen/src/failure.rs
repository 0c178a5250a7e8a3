//! Failures of a call: no answer, or none that is valid, and the classes in which they are counted.

use std::time::Duration;

/// The most bytes of a body, far above every requested answer: an admission patch or one object of at most 1.5 MiB.
pub(crate) const MOST_BODY_BYTES: usize = 4 << 20;

/// Why there is no valid answer.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub class: Class,
    pub text: String,
}

/// The classes that failures are counted in.
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

    /// A body beyond [`MOST_BODY_BYTES`], with the length that was announced.
    pub(crate) fn body_too_large(announced: Option<u64>) -> Self {
        let announced = announced.map(|bytes| format!(" (Content-Length: {bytes})")).unwrap_or_default();
        Self::invalid(format!("the body is larger than {} MiB{announced}", MOST_BODY_BYTES >> 20))
    }

    /// A compressed body that is too large, with its compressed length.
    pub(crate) fn unpacked_too_large(packed: usize) -> Self {
        let most = MOST_BODY_BYTES >> 20;
        Self::invalid(format!("the body is larger than {most} MiB when it is unpacked (from {packed} bytes)"))
    }

    pub(crate) fn http(text: String) -> Self {
        Self { class: Class::HttpError, text }
    }
}

/// An error with its causes, one line.
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

/// The step that a call was waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    Connection,
    Head,
    /// Flow control: the server's permission to send the whole request.
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
