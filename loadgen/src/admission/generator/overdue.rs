//! When calls may be given up whose time is over. Pure.
//!
//! A thread that was not let run for long finds answers in its sockets whose time is over by now. That is no fault of the webhook, so
//! they count, and the lateness of other calls tells of it. Therefore a call is given up only when everything that lay in the sockets has
//! been read; but what comes faster than it is read keeps nobody alive.

use crate::failure::MOST_BODY_BYTES;

use super::EVENTS;

/// What one turn reads of a connection, at least.
const TURN_BYTES: usize = 256 << 10;

/// What is known at the end of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// A call's time is over.
    pub(super) overdue: bool,
    /// The poll had more to tell than one look takes, or a connection more to read.
    pub(super) more: bool,
    pub(super) connections: usize,
}

/// Turns that those whose time is over still wait for; `None` while there are none.
#[derive(Debug, Default)]
pub(super) struct Overdue(Option<usize>);

impl Overdue {
    /// Whether calls are given up after this turn.
    pub(super) fn over(&mut self, turn: Turn) -> bool {
        if !turn.overdue || !turn.more {
            self.0 = None;
            return turn.overdue;
        }
        // By then every connection has been told of once, and the largest body has been read.
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
