//! A stream that ends in the middle.

use mock_faults::Http2Code;

/// A stream that ends in the middle: the HTTP library closes or resets what carries it.
#[derive(Debug, thiserror::Error)]
#[error("the stream was cut by a fault")]
pub(crate) struct Broken(#[source] h2::Error);

impl Broken {
    /// With the reason of `RST_STREAM`, which the HTTP library looks for in the source.
    pub fn because(code: Http2Code) -> Self {
        Self(h2::Error::from(h2::Reason::from(code.number())))
    }
}
