//! Decides when calls that timed out are given up. Pure: no I/O.
//!
//! If a thread gets no CPU for a long time, its sockets contain answers of calls that have timed out meanwhile. The
//! webhook is not at fault, so such late answers count, and the lateness of other calls shows the pause. A call is
//! therefore given up only after all data in the thread's sockets has been read. The wait for this data is bounded, so
//! that data which arrives faster than it is read cannot keep a call alive.

use crate::failure::MOST_BODY_BYTES;

use super::EVENTS;

/// Minimum number of bytes that one loop of the thread reads from a connection.
const TURN_BYTES: usize = 256 << 10;

/// The state of the thread at the end of one loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Whether a call has timed out.
    pub(super) overdue: bool,
    /// Whether the poll had more events, or a connection more data, than one loop handles.
    pub(super) more: bool,
    pub(super) connections: usize,
}

/// Number of loops for which timed-out calls still wait; `None` if no call has timed out.
#[derive(Debug, Default)]
pub(super) struct Overdue(Option<usize>);

impl Overdue {
    /// Whether timed-out calls are given up after this loop.
    pub(super) fn over(&mut self, turn: Turn) -> bool {
        if !turn.overdue || !turn.more {
            self.0 = None;
            return turn.overdue;
        }
        // By then every connection has been reported once, and the largest body has been read.
        let left = self.0.get_or_insert(turn.connections / EVENTS + MOST_BODY_BYTES / TURN_BYTES + 1);
        if *left == 0 {
            self.0 = None;
            return true;
        }
        *left -= 1;
        false
    }
}

#[cfg(test)]
mod tests;
