//! The error of a stream that ends in the middle.

use mock_faults::Http2Code;

/// A stream that ends in the middle: the HTTP library closes or resets its connection or stream.
#[derive(Debug, thiserror::Error)]
#[error("the stream was cut by a fault")]
pub(crate) struct Broken(#[source] h2::Error);

impl Broken {
    /// With the code of `RST_STREAM`, which the HTTP library reads from the error's source.
    pub fn because(code: Http2Code) -> Self {
        Self(h2::Error::from(h2::Reason::from(code.number())))
    }
}
