//! The cost of HTTP/2 frames that a client sends without a request.
//!
//! Pure: it reads the bytes from TLS before hyper does. It finds the end of each request, and detects clients that send
//! far more other frames than their requests need. hyper itself limits streams, empty DATA frames and frames of a head.

use tokio::time::Instant;

/// The connection preface (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;
/// The head of a frame: length, type, flags, stream.
const HEAD_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// Frames without a request that a client may send at once. That is four for each stream: a client that gives up all
/// its calls sends a reset and a PING for each.
const ALLOWANCE: u32 = 1000;
/// Further such frames that a complete request allows, for its windows and its end.
const PER_REQUEST: u32 = 8;
/// Further such frames that each second allows, for the PINGs of an idle connection.
const PER_SECOND: u32 = 10;
/// Bytes sent to the client that allow one more such frame. Go's client updates two windows for each 4 KiB that it has
/// read.
const SENT_BYTES: usize = 1 << 10;
/// The cost of a SETTINGS frame in other frames: its settings are applied to all streams.
const SETTINGS_COST: u32 = 50;
/// Each such number of bytes in a frame without a request costs as much as one more frame.
const COST_BYTES: usize = 256;

/// The frames of a connection, read as they arrive.
#[derive(Debug)]
pub(super) struct Frames {
    /// Most bytes of the encoded head of a request.
    head_max: usize,
    /// Bytes to skip: the preface, or the rest of a payload.
    skip: usize,
    head: [u8; HEAD_BYTES],
    /// Bytes of `head` that have arrived.
    filled: usize,
    /// Bytes so far of the request's head.
    block_bytes: usize,
    allowance: u32,
    /// Time up to which the allowance was renewed.
    paid: Option<Instant>,
    sent_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flood {
    /// Too many frames without a request.
    #[error("too many HTTP/2 frames without a request")]
    Frames,
    #[error("the head of an HTTP/2 request is too long")]
    Head,
}

impl Frames {
    /// A connection without frames so far, whose heads have at most `head_max` bytes.
    pub(super) fn new(head_max: usize) -> Self {
        Self {
            head_max,
            skip: PREFACE_BYTES,
            head: [0; HEAD_BYTES],
            filled: 0,
            block_bytes: 0,
            allowance: ALLOWANCE,
            paid: None,
            sent_bytes: 0,
        }
    }

    /// Reads on; returns whether a request is complete. The clock is read only if frames without a request came.
    pub(super) fn read(&mut self, mut bytes: &[u8], now: impl FnOnce() -> Instant) -> Result<bool, Flood> {
        let (mut cost, mut is_whole) = (0_u32, false);
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                break;
            }
            let (next, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.filled));
            self.head[self.filled..][..next.len()].copy_from_slice(next);
            self.filled += next.len();
            bytes = rest;
            if self.filled == HEAD_BYTES {
                self.filled = 0;
                cost = cost.saturating_add(self.frame(&mut is_whole)?);
            }
        }
        if cost > 0 {
            self.spend(cost, now())?;
        }
        Ok(is_whole)
    }

    /// The peer has been sent this many bytes, for which it may update its windows.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        if self.sent_bytes >= SENT_BYTES {
            self.earn(self.sent_bytes / SENT_BYTES);
            self.sent_bytes %= SENT_BYTES;
        }
    }

    /// Handles the head of a frame; returns the frame's cost.
    fn frame(&mut self, is_whole: &mut bool) -> Result<u32, Flood> {
        let [high, middle, low, kind, flags, ..] = self.head;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.skip = length;
        let ends = flags & END_STREAM != 0;
        match kind {
            HEADERS | CONTINUATION => {
                self.block_bytes += length;
                if self.block_bytes > self.head_max {
                    return Err(Flood::Head);
                }
                if flags & END_HEADERS != 0 {
                    self.block_bytes = 0;
                }
                if kind == CONTINUATION || !ends {
                    return Ok(0);
                }
            }
            DATA if ends => {}
            DATA if length > 0 => return Ok(0),
            SETTINGS if flags & ACK == 0 => return Ok(SETTINGS_COST),
            _ => return Ok(1 + u32::try_from(length / COST_BYTES).unwrap_or(ALLOWANCE)),
        }
        *is_whole = true;
        self.earn(PER_REQUEST as usize);
        Ok(0)
    }

    fn earn(&mut self, frames: usize) {
        let frames = u32::try_from(frames).unwrap_or(ALLOWANCE);
        self.allowance = self.allowance.saturating_add(frames).min(ALLOWANCE);
    }

    fn spend(&mut self, cost: u32, now: Instant) -> Result<(), Flood> {
        let paid = *self.paid.get_or_insert(now);
        let frames = now.saturating_duration_since(paid).as_millis() * u128::from(PER_SECOND) / 1000;
        if frames > 0 {
            self.paid = Some(now);
            self.earn(usize::try_from(frames).unwrap_or(usize::MAX));
        }
        self.allowance = self.allowance.checked_sub(cost).ok_or(Flood::Frames)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Time after which a client with no allowance left has all of it again.
    const REFILL: Duration = Duration::from_secs((ALLOWANCE / PER_SECOND) as u64);

    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;
    const PRIORITY: u8 = 2;
    const RST_STREAM: u8 = 3;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let length_bytes = u32::try_from(length).unwrap().to_be_bytes();
        let mut bytes = vec![length_bytes[1], length_bytes[2], length_bytes[3], kind, flags, 0, 0, 0, 1];
        bytes.resize(HEAD_BYTES + length, 0xff);
        bytes
    }

    fn opened() -> Frames {
        let mut frames = Frames::new(100);
        assert_eq!(frames.read(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", unasked), Ok(false));
        frames
    }

    fn unasked() -> Instant {
        panic!("the clock is not needed")
    }

    /// The number of such frames that are accepted before the connection is ended, up to 5,000.
    fn endured(bytes: &[u8]) -> usize {
        let (mut frames, now) = (opened(), Instant::now());
        (0..5000).take_while(|_| frames.read(bytes, || now).is_ok()).count()
    }

    #[test]
    fn floods_of_frames_without_a_request_end_the_connection() {
        for (kind, length) in [(PRIORITY, 5), (WINDOW_UPDATE, 4), (PING, 8), (RST_STREAM, 4), (0xfa, 0), (DATA, 0)] {
            assert_eq!(endured(&frame(kind, 0, length)), 1000, "{kind}");
        }
        assert_eq!(endured(&frame(SETTINGS, 0, 6)), 20);
        assert_eq!(endured(&frame(0xfa, 0, 16 << 10)), 15, "large ones of an unknown type");
        assert_eq!(endured(&frame(PING, 0, 8).repeat(1001)), 0, "in one piece");
        assert_eq!(endured(&[frame(HEADERS, END_HEADERS, 50), frame(RST_STREAM, 0, 4)].concat()), 1000);
    }

    /// Requests, and the frames that belong to them, are accepted without end.
    #[test]
    fn requests_and_their_windows_are_no_flood() {
        let review = [frame(HEADERS, END_HEADERS, 50), frame(DATA, 0, 900), frame(DATA, END_STREAM, 0)].concat();
        assert_eq!(endured(&review), 5000);
        let beside = [frame(RST_STREAM, 0, 4), frame(PING, 0, 8), frame(WINDOW_UPDATE, 0, 4)].concat();
        assert_eq!(endured(&[review, beside].concat()), 5000);
        let (mut frames, now) = (opened(), Instant::now());
        for _ in 0..5000 {
            frames.sent(4 << 10);
            assert_eq!(frames.read(&frame(WINDOW_UPDATE, 0, 4).repeat(2), || now), Ok(false));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_pays_for_pings() {
        let mut frames = opened();
        let pings = frame(PING, 0, 8).repeat(1000);
        frames.read(&pings, Instant::now).unwrap();
        tokio::time::advance(REFILL).await;
        frames.read(&pings, Instant::now).unwrap();
        tokio::time::advance(REFILL / 2).await;
        assert_eq!(frames.read(&pings, Instant::now), Err(Flood::Frames));
    }

    /// The result is the same wherever the byte stream is cut.
    #[test]
    fn a_request_is_whole_with_its_last_frame() {
        let head = frame(HEADERS, END_HEADERS, 50);
        let whole = [&head[..], &frame(DATA, 0, 20), &frame(DATA, END_STREAM, 3)].concat();
        for piece in [1, 2, 9, 10, 58, whole.len()] {
            let mut frames = opened();
            let seen: Vec<bool> = whole.chunks(piece).map(|piece| frames.read(piece, unasked).unwrap()).collect();
            assert_eq!(seen.iter().filter(|seen| **seen).count(), 1, "{piece}");
            let at = seen.iter().position(|seen| *seen).unwrap() * piece;
            assert!(at + piece >= whole.len() - 3, "{piece}: {at}");
        }
        let mut frames = opened();
        assert_eq!(frames.read(&head, unasked), Ok(false));
        assert_eq!(frames.read(&frame(HEADERS, END_STREAM | END_HEADERS, 50), unasked), Ok(true));
    }

    #[test]
    fn a_head_that_never_ends_is_refused() {
        let mut frames = opened();
        assert_eq!(frames.read(&frame(HEADERS, END_HEADERS, 100), unasked), Ok(false));
        assert_eq!(frames.read(&frame(HEADERS, 0, 60), unasked), Ok(false));
        assert_eq!(frames.read(&frame(CONTINUATION, 0, 40), unasked), Ok(false));
        assert_eq!(frames.read(&frame(CONTINUATION, END_HEADERS, 1), unasked), Err(Flood::Head));
    }
}
