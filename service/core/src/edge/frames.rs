//! The frames that a client sends over HTTP/2, as far as they bring no request and cost work all the same.
//!
//! Pure: it reads what came out of TLS before hyper does. It knows when a request is whole, and when a client sends far more frames beside
//! its requests than any client needs. hyper itself bounds streams, empty DATA frames and frames of a head.

use tokio::time::Instant;

use super::table::Table;

/// What comes before the first frame (RFC 9113, section 3.4).
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
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
/// Bytes of a priority in the head of a request (RFC 9113, section 6.2).
const PRIORITY_BYTES: usize = 5;

/// Frames without a request that a client may send at once. Four for each of its streams: one that gives up all of its calls sends a
/// reset and a PING for each.
const ALLOWANCE: u32 = 1000;
/// Such frames that a whole request pays for: its windows, its end.
const PER_REQUEST: u32 = 8;
/// Such frames that a second pays for: PINGs of a connection that does nothing else.
const PER_SECOND: u32 = 10;
/// Sent bytes that pay for one such frame. Go's client updates two windows for each 4 KiB that it has read.
const SENT_BYTES: usize = 1 << 10;
/// Settings cost as much as so many other frames: each is applied to all streams.
const SETTINGS_COST: u32 = 50;
/// Heads that a client may put into HPACK's table before its connection is given up: as many as it may have streams before one request is
/// whole, all of which it may send before it knows that the table has no room.
const KEPT_HEADS: u32 = 20;
/// And before the connection is ended: it goes on although it was told goodbye.
const KEPT_HEADS_MAX: u32 = 2 * KEPT_HEADS;
/// So many bytes of a frame without a request count as one more.
const COST_BYTES: usize = 256;

/// Frames of a connection as they come.
#[derive(Debug)]
pub(super) struct Frames {
    /// Most bytes of the encoded head of a request.
    head_max: usize,
    /// Bytes to pass over: the preface, or the rest of a payload.
    skip: usize,
    /// Bytes of a payload before and behind the part of a head in it: padding, priority.
    beside: Beside,
    table: Table,
    kept_heads: u32,
    head: [u8; HEAD_BYTES],
    /// Bytes of `head` that are there.
    filled: usize,
    /// Bytes of the request's head under way.
    block_bytes: usize,
    allowance: u32,
    /// Until when time has paid.
    paid: Option<Instant>,
    sent_bytes: usize,
}

/// Where the part of a head is in a payload.
#[derive(Debug, Clone, Copy, Default)]
struct Beside {
    /// The payload has one.
    is_head: bool,
    /// The next byte says how much padding there is.
    is_padded: bool,
    before: usize,
    behind: usize,
    /// The head ends with this payload.
    ends: bool,
}

/// What was seen in some bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// A request came to its end.
    pub is_whole: bool,
    /// The client makes us keep more than it should: its connection should be given up.
    pub is_greedy: bool,
}

/// Why a connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flood {
    /// Too many frames that bring no request.
    #[error("too many HTTP/2 frames without a request")]
    Frames,
    /// A head that is far too long.
    #[error("the head of an HTTP/2 request is too long")]
    Head,
    /// Heads that are kept, although there is no room for them.
    #[error("the client fills HPACK's table, which has no room")]
    Table,
}

impl Frames {
    /// A connection on which nothing has come yet, whose heads have at most `head_max` bytes.
    pub(super) fn new(head_max: usize) -> Self {
        Self {
            head_max,
            skip: PREFACE_BYTES,
            beside: Beside::default(),
            table: Table::default(),
            kept_heads: 0,
            head: [0; HEAD_BYTES],
            filled: 0,
            block_bytes: 0,
            allowance: ALLOWANCE,
            paid: None,
            sent_bytes: 0,
        }
    }

    /// Reads on; says what was seen. The clock is only asked when frames without a request came.
    pub(super) fn read(&mut self, mut bytes: &[u8], now: impl FnOnce() -> Instant) -> Result<Seen, Flood> {
        let (mut cost, mut is_whole) = (0_u32, false);
        loop {
            let (payload, rest) = bytes.split_at(self.skip.min(bytes.len()));
            if self.beside.is_head {
                self.part(payload)?;
            } else {
                self.skip -= payload.len();
            }
            bytes = rest;
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
        Ok(Seen { is_whole, is_greedy: self.kept_heads > KEPT_HEADS })
    }

    /// Reads the part of a head in a payload.
    fn part(&mut self, mut payload: &[u8]) -> Result<(), Flood> {
        while let Some((&first, rest)) = payload.split_first() {
            let beside = &mut self.beside;
            if beside.is_padded {
                // Padding that is longer than its payload is refused by h2.
                (beside.is_padded, beside.behind) = (false, usize::from(first));
                (self.skip, payload) = (self.skip - 1, rest);
                continue;
            }
            if beside.before > 0 {
                beside.before -= 1;
                (self.skip, payload) = (self.skip - 1, rest);
                continue;
            }
            let (part, padding) = payload.split_at(payload.len().min(self.skip.saturating_sub(beside.behind)));
            self.table.read(part);
            self.skip -= part.len() + padding.len();
            break;
        }
        if self.skip == 0 {
            let ends = std::mem::take(&mut self.beside).ends;
            if ends {
                self.kept_heads = self.table.end();
            }
        }
        if self.kept_heads > KEPT_HEADS_MAX { Err(Flood::Table) } else { Ok(()) }
    }

    /// The peer has been sent so many bytes, for which it may update its windows.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        if self.sent_bytes >= SENT_BYTES {
            self.earn(self.sent_bytes / SENT_BYTES);
            self.sent_bytes %= SENT_BYTES;
        }
    }

    /// A frame begins; what it costs.
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
                let ends_head = flags & END_HEADERS != 0;
                if ends_head {
                    self.block_bytes = 0;
                }
                let has = |flag: u8| kind == HEADERS && flags & flag != 0;
                let before = if has(PRIORITY) { PRIORITY_BYTES } else { 0 };
                self.beside = Beside { is_head: true, is_padded: has(PADDED), before, behind: 0, ends: ends_head };
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

    /// The pause after which a client that has spent its allowance has all of it again.
    const REFILL: Duration = Duration::from_secs((ALLOWANCE / PER_SECOND) as u64);

    const NOTHING: Seen = Seen { is_whole: false, is_greedy: false };
    const WHOLE: Seen = Seen { is_whole: true, is_greedy: false };
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
        assert_eq!(frames.read(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", unasked), Ok(NOTHING));
        frames
    }

    fn unasked() -> Instant {
        panic!("the clock is not needed")
    }

    /// How many such frames come before the connection is ended, up to 5,000.
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

    /// Requests, and what belongs to them, come as long as they like.
    #[test]
    fn requests_and_their_windows_are_no_flood() {
        let review = [frame(HEADERS, END_HEADERS, 50), frame(DATA, 0, 900), frame(DATA, END_STREAM, 0)].concat();
        assert_eq!(endured(&review), 5000);
        let beside = [frame(RST_STREAM, 0, 4), frame(PING, 0, 8), frame(WINDOW_UPDATE, 0, 4)].concat();
        assert_eq!(endured(&[review, beside].concat()), 5000);
        let (mut frames, now) = (opened(), Instant::now());
        for _ in 0..5000 {
            frames.sent(4 << 10);
            assert_eq!(frames.read(&frame(WINDOW_UPDATE, 0, 4).repeat(2), || now), Ok(NOTHING));
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

    /// However the bytes are cut, the same is seen.
    #[test]
    fn a_request_is_whole_with_its_last_frame() {
        let head = frame(HEADERS, END_HEADERS, 50);
        let whole = [&head[..], &frame(DATA, 0, 20), &frame(DATA, END_STREAM, 3)].concat();
        for piece in [1, 2, 9, 10, 58, whole.len()] {
            let mut frames = opened();
            let seen: Vec<bool> =
                whole.chunks(piece).map(|piece| frames.read(piece, unasked).unwrap().is_whole).collect();
            assert_eq!(seen.iter().filter(|seen| **seen).count(), 1, "{piece}");
            let at = seen.iter().position(|seen| *seen).unwrap() * piece;
            assert!(at + piece >= whole.len() - 3, "{piece}: {at}");
        }
        let mut frames = opened();
        assert_eq!(frames.read(&head, unasked), Ok(NOTHING));
        assert_eq!(frames.read(&frame(HEADERS, END_STREAM | END_HEADERS, 50), unasked), Ok(WHOLE));
    }

    /// Clients that learn late that the table has no room are given up; those that fill it on are ended.
    #[test]
    fn heads_that_are_kept_are_few() {
        let inserting = |flags: u8, beside: &[u8], padding: usize| {
            let part = [beside, &[0x82, 0x40, 1, b'x', 1, b'y'], &vec![0x40; padding]].concat();
            let mut bytes = frame(HEADERS, END_HEADERS | END_STREAM | flags, part.len());
            bytes.splice(HEAD_BYTES.., part);
            bytes
        };
        for head in [inserting(0, &[], 0), inserting(PADDED | PRIORITY, &[9, 0x40, 0x40, 0x40, 0x40, 0x40], 9)] {
            let mut frames = opened();
            for number in 1..=40 {
                let seen = frames.read(&head, unasked).unwrap();
                assert_eq!(seen, Seen { is_whole: true, is_greedy: number > 20 }, "{number}");
            }
            assert_eq!(frames.read(&head, unasked), Err(Flood::Table));
        }
        let padding_alone = {
            let part = [&[3, 0x82][..], &[0x40, 0x40, 0x40]].concat();
            let mut bytes = frame(HEADERS, END_HEADERS | END_STREAM | PADDED, part.len());
            bytes.splice(HEAD_BYTES.., part);
            bytes
        };
        let mut frames = opened();
        for _ in 0..100 {
            assert_eq!(frames.read(&padding_alone, unasked), Ok(WHOLE));
        }
    }

    #[test]
    fn a_head_that_never_ends_is_refused() {
        let mut frames = opened();
        assert_eq!(frames.read(&frame(HEADERS, END_HEADERS, 100), unasked), Ok(NOTHING));
        assert_eq!(frames.read(&frame(HEADERS, 0, 60), unasked), Ok(NOTHING));
        assert_eq!(frames.read(&frame(CONTINUATION, 0, 40), unasked), Ok(NOTHING));
        assert_eq!(frames.read(&frame(CONTINUATION, END_HEADERS, 1), unasked), Err(Flood::Head));
    }
}
