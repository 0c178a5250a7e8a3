//! The rest of the body of a refused call.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

/// Most bytes that are read and dropped: the default limit of a review, so that the sender of a large one still gets
/// its answer.
const BYTES_MAX: usize = 8 << 20;
/// Longest time of reading.
const SPAN_MAX: Duration = Duration::from_secs(1);

/// Reads the rest of a refused call's body and keeps nothing of it, within cheap limits. Closing a socket with unread
/// bytes resets its connection, and the client would never see why it was refused.
pub async fn discard<B>(mut body: B)
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.is_end_stream() {
        return;
    }
    let mut left = BYTES_MAX;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    // A longer body is cut when its connection closes.
    let _ = timeout(SPAN_MAX, reading).await;
}
