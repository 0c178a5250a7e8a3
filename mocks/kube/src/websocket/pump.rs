//! Sends the stream of a watch as WebSocket frames, and reads the client's frames.
//!
//! Owns the order of sending: the next item is taken from the stream only after the previous item was sent. The
//! client's frames are read all the time, so that pings are answered and the client's close is noticed; the content of
//! frames is discarded.

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

/// Size of the read buffer in bytes, which exists as long as the watch; it is small because a client sends almost
/// nothing on a watch.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// Longest message that a client may send, in bytes. The content of messages is discarded; after a longer message the
/// connection is closed. kube-apiserver reads up to 32 MiB.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of the write buffer in bytes: one write of a watch has up to 256 KiB plus one object of the largest
/// size.
const WRITE_BUFFER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Time for a client to close the connection after the server's close frame.
const LINGER: Duration = Duration::from_secs(1);
/// Number of bytes that are read at a time from a finished connection.
const DISCARD_BYTES: usize = 1024;

type Frames = WebSocketStream<TokioIo<Upgraded>>;

/// The reason why a WebSocket ends.
enum End {
    /// The stream of the watch has ended.
    Clean,
    /// A fault ends the stream before its clean end.
    Cut,
    /// The client has left or has broken the protocol.
    Left,
}

struct Pump {
    frames: Frames,
    body: UnsyncBoxBody<Bytes, Broken>,
    /// Whether frames wait to be sent.
    flushing: bool,
    /// Whether the last frame did not complete its event, because a fault sends lines in pieces.
    within: bool,
}

/// Serves a WebSocket until its end. The HTTP library must already have the handshake's answer.
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

/// Sends a close frame and closes the connection, as kube-apiserver does even after a client's close frame.
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

    /// Ready when the client has closed the connection or broken the protocol.
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

    /// Sends each event as one WebSocket message, which includes the newline.
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
