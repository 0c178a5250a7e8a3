//! When calls that timed out may be given up. Pure.
//!
//! A thread that did not get the processor for long finds answers in its sockets whose calls have timed out by now. The
//! webhook is not at fault, so these answers count, and the lateness of other calls shows it. Therefore a call is given
//! up only after all data in the sockets has been read. The wait is bounded, so that data arriving faster than it is
//! read cannot keep a call alive.

use crate::failure::MOST_BODY_BYTES;

use super::EVENTS;

/// The least number of bytes that one turn reads from a connection.
const TURN_BYTES: usize = 256 << 10;

/// The state at the end of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// A call has timed out.
    pub(super) overdue: bool,
    /// The poll had more events than one look takes, or a connection more data.
    pub(super) more: bool,
    pub(super) connections: usize,
}

/// Turns for which timed-out calls still wait; `None` if there are none.
#[derive(Debug, Default)]
pub(super) struct Overdue(Option<usize>);

impl Overdue {
    /// Whether calls are given up after this turn.
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
