//! The bodies of answers: a block of bytes, a long list, or a watch.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::broken::Broken;
use super::framed::Framed;
use super::pretty::Indenter;
use super::represent::{List, ListBody};
use super::watch::WatchBody;

pub(crate) enum Body {
    Full(Option<Bytes>),
    /// Encoded while it is read.
    List(Box<ListBody>),
    /// A stream of unknown length that ends at once.
    Nothing,
    Watch(Box<WatchBody>),
    /// A watch in protobuf.
    Protobuf(Box<Framed>),
}

impl Body {
    /// Indents JSON for people; watches and empty bodies stay unchanged.
    pub fn indent(&mut self) {
        match self {
            Self::Full(Some(bytes)) => *bytes = Bytes::from(Indenter::default().push(bytes)),
            Self::List(list) => list.indent(),
            Self::Full(None) | Self::Nothing | Self::Watch(_) | Self::Protobuf(_) => {}
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Full(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl From<List> for Body {
    fn from(list: List) -> Self {
        match list {
            List::Whole(bytes) => bytes.into(),
            List::Pieces(list) => Self::List(list),
        }
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
            Self::Protobuf(watch) => watch.poll_next(cx).map(|next| next.map(|bytes| bytes.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::List(_) | Self::Nothing | Self::Watch(_) | Self::Protobuf(_) => SizeHint::default(),
        }
    }
}
