//! The bodies of answers: a block of bytes, a long list, or a watch.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::represent::ListBody;
use super::watch::WatchBody;
use mock_faults::Http2Code;

/// What is sent back.
pub(crate) enum Body {
    Full(Option<Bytes>),
    /// Made as it is read.
    List(Box<ListBody>),
    /// A stream of unknown length that ends at once.
    Nothing,
    Watch(Box<WatchBody>),
}

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

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Full(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::List(list) => Poll::Ready(list.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Nothing => Poll::Ready(None),
            Self::Watch(watch) => watch.poll_next(cx).map(|next| next.map(|bytes| bytes.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::List(_) | Self::Nothing | Self::Watch(_) => SizeHint::default(),
        }
    }
}
