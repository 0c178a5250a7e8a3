//! The cost of HTTP/2 frames that a client sends without a request.
//!
//! Pure: it reads the bytes from TLS before hyper does. It finds the end of each request, and detects clients that send
//! far more other frames than their requests need. hyper itself limits streams, empty DATA frames and frames of a head.

use tokio::time::Instant;

use super::table::Table;

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
const PADDED: u8 = 8;
const WITH_PRIORITY: u8 = 0x20;
/// Bytes of a priority in the head of a request (RFC 9113, section 6.2).
const PRIORITY_BYTES: usize = 5;

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
/// Heads that a client may put into HPACK's table before its connection is given up: as many as it may have streams before one request is
/// whole, all of which it may send before it knows that the table has no room.
const KEPT_HEADS: u32 = 20;
/// And before the connection is ended: it goes on after the GOAWAY.
const KEPT_HEADS_MAX: u32 = 2 * KEPT_HEADS;
/// Each such number of bytes in a frame without a request costs as much as one more frame.
const COST_BYTES: usize = 256;

/// The frames of a connection, read as they arrive.
#[derive(Debug)]
pub(super) struct Frames {
    /// Most bytes of the encoded head of a request.
    head_max: usize,
    /// Bytes to skip: the preface, or the rest of a payload.
    skip: usize,
    /// Bytes of a payload before and behind the part of a head in it: padding, priority.
    beside: Beside,
    table: Table,
    kept_heads: u32,
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

/// The findings in some bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// A request came to its end.
    pub is_whole: bool,
    /// The client makes us keep more than it should: its connection should be given up.
    pub is_greedy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flood {
    /// Too many frames without a request.
    #[error("too many HTTP/2 frames without a request")]
    Frames,
    #[error("the head of an HTTP/2 request is too long")]
    Head,
    /// Heads that are kept, although there is no room for them.
    #[error("the client fills HPACK's table, which has no room")]
    Table,
}

impl Frames {
    /// A connection without frames so far, whose heads have at most `head_max` bytes.
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

    /// Reads on; returns the findings. The clock is read only if frames without a request came.
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
            self.kept_heads = self.table.frame_end();
            if std::mem::take(&mut self.beside).ends {
                self.table.end();
            }
        }
        if self.kept_heads > KEPT_HEADS_MAX { Err(Flood::Table) } else { Ok(()) }
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
                let ends_head = flags & END_HEADERS != 0;
                if ends_head {
                    self.block_bytes = 0;
                }
                let has = |flag: u8| kind == HEADERS && flags & flag != 0;
                let before = if has(WITH_PRIORITY) { PRIORITY_BYTES } else { 0 };
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
mod tests;
