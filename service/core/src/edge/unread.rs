//! The rest of the body of a call that was refused.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

/// Most bytes that are read and dropped: the largest review that is taken by default, so that whoever sends one learns that it was shed.
const BYTES_MAX: usize = 8 << 20;
/// And for how long.
const SPAN_MAX: Duration = Duration::from_secs(1);

/// Reads what is left of the body of a refused call and keeps nothing, as far as that is cheap: a socket that is closed with bytes
/// unread resets its connection, and the client never sees why it was refused.
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
    // A body that takes longer is closed with its connection.
    let _ = timeout(SPAN_MAX, reading).await;
}
