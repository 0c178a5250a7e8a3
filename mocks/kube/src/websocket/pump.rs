//! The pump from the stream of a watch to WebSocket frames, which also reads the client's frames.
//!
//! Owns the order: the next item is taken from the stream only after the previous one has left. The client's frames are
//! read all the time, so that its pings are answered and its leaving is noticed; their content is discarded.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http_body::Body as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame, Utf8Bytes};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::broken::Broken;
use crate::connection::Opened;

/// A client sends next to nothing on a watch; the buffer lives as long as the watch does.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// Longest message of a client, which is discarded; a client with a longer one is cut off. kube-apiserver reads up to
/// 32 MiB.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// One block of a watch: its last object comes on top of 256 KiB, and an object is as large as a request may be.
const WRITE_BUFFER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Time for a client to close its side too; the same as for one that HTTP refused.
const LINGER: Duration = Duration::from_secs(1);
/// Bytes read at a time from a finished connection.
const DISCARD_BYTES: usize = 1024;

type Frames = WebSocketStream<TokioIo<Upgraded>>;

/// How a WebSocket ends.
enum End {
    /// The stream is over.
    Clean,
    /// A fault breaks it off.
    Cut,
    /// The client has left or broke the protocol.
    Left,
}

struct Pump {
    frames: Frames,
    body: UnsyncBoxBody<Bytes, Broken>,
    /// Frames wait to be sent.
    flushing: bool,
    /// The last frame was only the beginning of an event: faults send lines in pieces.
    within: bool,
}

/// Serves a WebSocket to its end. The handshake's answer must have been handed to the HTTP library.
pub(crate) async fn serve(opened: Opened) {
    let Ok(upgraded) = opened.upgrade.await else { return };
    let io = TokioIo::new(upgraded);
    let Some(body) = opened.body else { return close(io).await };
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let frames = Frames::from_raw_socket(io, Role::Server, Some(config)).await;
    let mut pump = Pump { frames, body, flushing: false, within: false };
    let end = std::future::poll_fn(|cx| pump.poll(cx)).await;
    let Pump { frames, body, .. } = pump;
    // For the audit the watch is over, whatever the client does with the remaining bytes.
    drop(body);
    if !matches!(end, End::Cut) {
        hang_up(frames).await;
    }
}

/// Sends a close frame and closes, as kube-apiserver does even after a client's close frame.
async fn hang_up(mut frames: Frames) {
    let normal = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static("") };
    // After a close frame of the client the library has its own answer, which only waits to be sent.
    let _ = frames.close(Some(normal)).await;
    let _ = frames.flush().await;
    close(frames.into_inner()).await;
}

async fn close(mut io: TokioIo<Upgraded>) {
    if io.shutdown().await.is_err() {
        return;
    }
    // Closing with unread bytes of the client would be a reset, and the close frame would be lost.
    let mut buffer = [0; DISCARD_BYTES];
    let rest = async { while io.read(&mut buffer).await.is_ok_and(|count| count > 0) {} };
    let _ = tokio::time::timeout(LINGER, rest).await;
}

impl Pump {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.poll_client(cx).is_ready() {
            return Poll::Ready(End::Left);
        }
        loop {
            if self.flushing {
                if ready!(self.frames.poll_flush_unpin(cx)).is_err() {
                    return Poll::Ready(End::Left);
                }
                self.flushing = false;
            }
            let Some(next) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else { return Poll::Ready(End::Clean) };
            let Ok(frame) = next else { return Poll::Ready(End::Cut) };
            if let Ok(data) = frame.into_data()
                && self.put(data).is_err()
            {
                return Poll::Ready(End::Left);
            }
        }
    }

    /// Ready when the client sends nothing more.
    fn poll_client(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match ready!(self.frames.poll_next_unpin(cx)) {
                // The pong must have left before events come into the same buffer, because a flush counts as the
                // events'.
                Some(Ok(Message::Ping(_))) => self.flushing = true,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Poll::Ready(()),
                Some(Ok(_)) => {}
            }
        }
    }

    /// Sends one message an event, its newline included.
    fn put(&mut self, mut bytes: Bytes) -> Result<(), Error> {
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', &bytes);
            let piece = bytes.split_to(end.map_or(bytes.len(), |end| end + 1));
            let data = if self.within { Data::Continue } else { Data::Text };
            self.within = end.is_none();
            // Not as a text of the library, which checks for UTF-8: faults send bytes that are none.
            let frame = Frame::message(piece, OpCode::Data(data), end.is_some());
            self.frames.start_send_unpin(Message::Frame(frame))?;
            self.flushing = true;
        }
        Ok(())
    }
}
