//! The error of a stream that ends before its clean end.

use mock_faults::Http2Code;

/// Ends a stream before its clean end: the HTTP library closes or resets the connection or the HTTP/2 stream.
#[derive(Debug, thiserror::Error)]
#[error("the stream was cut by a fault")]
pub(crate) struct Broken(#[source] h2::Error);

impl Broken {
    /// The error with a code for `RST_STREAM`, which the HTTP library reads from the error's source.
    pub fn because(code: Http2Code) -> Self {
        Self(h2::Error::from(h2::Reason::from(code.number())))
    }
}
