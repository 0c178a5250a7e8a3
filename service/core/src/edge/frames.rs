//! Detects floods of HTTP/2 frames: clients that send far more frames than their requests need.
//!
//! [`Frames`] reads the decrypted bytes before hyper reads them. [`Frames`] also finds the end of each request, and
//! does no I/O. hyper itself limits streams, empty DATA frames and the frames of a head.

use tokio::time::Instant;

use super::table::Table;

/// Bytes of the connection preface (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;
/// Number of bytes of a frame's head: length, type, flags, stream.
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
/// Bytes of the priority in a HEADERS frame (RFC 9113, section 6.2).
const PRIORITY_BYTES: usize = 5;

/// Number of frames outside requests that a client may send at once: four for each allowed stream. A client that
/// cancels all its calls sends a reset and a PING for each call.
const ALLOWANCE: u32 = 1000;
/// Number of frames outside requests that each complete request allows in addition, for window updates and the end of
/// the stream.
const PER_REQUEST: u32 = 8;
/// Number of frames outside requests that each second allows in addition, for PINGs of an idle connection.
const PER_SECOND: u32 = 10;
/// For each 1024 bytes that the service sends to the client, one more frame outside requests is allowed. Go's client
/// updates two windows for each 4 KiB that it reads.
const SENT_BYTES: usize = 1 << 10;
/// A SETTINGS frame counts as this many frames, because its settings are applied to all streams.
const SETTINGS_COST: u32 = 50;
/// After this many heads with entries for HPACK's table, the connection gets a GOAWAY. A client may open this many
/// streams before its first complete request, when it does not know yet that the table's size is 0.
const KEPT_HEADS: u32 = 20;
/// After this many heads with entries for HPACK's table, the connection is ended, because its client continued after
/// the GOAWAY.
const KEPT_HEADS_MAX: u32 = 2 * KEPT_HEADS;
/// A frame outside requests counts as one more frame for each 256 bytes of its length.
const COST_BYTES: usize = 256;

#[derive(Debug)]
pub(super) struct Frames {
    /// Maximum number of bytes of a request's encoded head.
    head_max: usize,
    /// Number of bytes to skip: those of the connection preface or of the rest of a payload.
    skip: usize,
    /// Number of bytes around the header block in a payload: padding and priority.
    beside: Beside,
    table: Table,
    kept_heads: u32,
    head: [u8; HEAD_BYTES],
    /// Number of bytes of `head` that have arrived.
    filled: usize,
    /// Number of bytes of the request's header block that have arrived.
    block_bytes: usize,
    allowance: u32,
    /// The time at which the allowance of frames was last renewed.
    paid: Option<Instant>,
    sent_bytes: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Beside {
    /// The payload has a header block fragment.
    is_head: bool,
    /// The next byte is the length of the padding.
    is_padded: bool,
    before: usize,
    behind: usize,
    /// The header block ends with the payload of this frame.
    ends: bool,
}

/// The result of reading some bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReadResult {
    pub is_whole: bool,
    /// The client stores too many values in HPACK's table, so the connection should get a GOAWAY.
    pub is_greedy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flood {
    #[error("too many HTTP/2 frames without a request")]
    Frames,
    #[error("the head of an HTTP/2 request is too long")]
    Head,
    /// The client sends too many heads whose values are kept in HPACK's table.
    #[error("the client fills HPACK's table, which has no room")]
    Table,
}

impl Frames {
    /// The reader of a new connection whose heads may have `head_max` bytes.
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

    /// Reads further bytes; returns whether a request is complete and whether the client stores too many values in
    /// HPACK's table. The clock is read only after frames outside requests.
    pub(super) fn read(&mut self, mut bytes: &[u8], now: impl FnOnce() -> Instant) -> Result<ReadResult, Flood> {
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
        Ok(ReadResult { is_whole, is_greedy: self.kept_heads > KEPT_HEADS })
    }

    /// Reads the header block fragment in a payload.
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

    /// Records that `bytes` bytes were sent to the peer, which may now update its windows.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        if self.sent_bytes >= SENT_BYTES {
            self.earn(self.sent_bytes / SENT_BYTES);
            self.sent_bytes %= SENT_BYTES;
        }
    }

    /// Reads the head of a frame; returns how many frames it counts as.
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
