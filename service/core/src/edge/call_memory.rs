//! The limit on memory that open calls hold: for streams, heads of requests, and answers that are not sent yet.
//!
//! This module owns the memory count of the process, which all listeners share. The module `peer` owns the memory count
//! of each peer. Other memory of reviews is counted in [`crate::share`].

use std::sync::Arc;
#[cfg(feature = "planted-bugs")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;

use super::peer::{Meter, Peer};

/// Bytes that an open call costs besides head and answer: its stream, its task and its handler (measured: 3 KiB).
pub(super) const CALL_BYTES: usize = 4 << 10;
/// Bytes that one field of a head costs without its text: `http` keeps 104 bytes and two indices of two bytes.
const FIELD_BYTES: usize = 112;
/// The limit for open calls of a process whose memory limit is unknown, in bytes. No process has a smaller limit.
const LEAST_BYTES: usize = 3 << 20;

#[derive(Debug)]
pub struct CallMemory {
    held: Meter,
    max: AtomicUsize,
    #[cfg(feature = "planted-bugs")]
    forgets_answers: AtomicBool,
}

/// Why the memory limit refuses a call. The names of the variants are label values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// The connection has sent no complete request yet, and has the most streams that are allowed until then.
    Unproven,
    /// The calls of this peer hold as much memory as one peer may use.
    Peer,
    /// The calls of all peers hold as much memory as the limit allows.
    Full,
}

/// The memory that one call holds; released on drop.
#[derive(Debug)]
pub(super) struct Hold {
    room: Arc<CallMemory>,
    peer: Arc<Peer>,
    bytes: usize,
}

impl CallMemory {
    pub fn of(max: usize) -> Arc<Self> {
        Arc::new(Self { max: AtomicUsize::new(max), ..Self::default() })
    }

    /// Sets the limit to `max` bytes, but never below the smallest limit.
    pub fn resize(&self, max: usize) {
        self.max.store(max.max(LEAST_BYTES), Ordering::Relaxed);
    }

    /// From now on, a call counts only until it has an answer, even if the answer is not sent. Only a planted bug uses
    /// this function.
    #[cfg(feature = "planted-bugs")]
    pub fn forget_answers(&self) {
        self.forgets_answers.store(true, Ordering::Relaxed);
    }

    pub fn held_bytes(&self) -> usize {
        self.held.now()
    }

    /// Panics if calls hold more memory than the limit.
    #[cfg(any(test, feature = "fuzz"))]
    pub(super) fn assert_kept(&self) {
        assert!(self.held_bytes() <= self.max(), "{} of {} bytes", self.held_bytes(), self.max());
    }

    /// Reserves memory for a call of `peer` with a head of `head_bytes`.
    pub(super) fn hold(self: &Arc<Self>, peer: &Arc<Peer>, head_bytes: usize) -> Result<Hold, NoRoom> {
        let bytes = CALL_BYTES + head_bytes;
        self.add(peer, bytes)?;
        Ok(Hold { room: Arc::clone(self), peer: Arc::clone(peer), bytes })
    }

    fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Counts `bytes` for `peer`. One peer may use at most seven eighths of the limit, so that some memory is left for
    /// other peers.
    fn add(&self, peer: &Peer, bytes: usize) -> Result<(), NoRoom> {
        let max = self.max();
        if !peer.try_open(bytes, max / 8 * 7) {
            return Err(NoRoom::Peer);
        }
        if !self.held.try_add(bytes, max) {
            peer.close(bytes);
            return Err(NoRoom::Full);
        }
        Ok(())
    }

    fn sub(&self, peer: &Peer, bytes: usize) {
        peer.close(bytes);
        self.held.sub(bytes);
    }
}

impl Default for CallMemory {
    fn default() -> Self {
        Self {
            held: Meter::default(),
            max: AtomicUsize::new(LEAST_BYTES),
            #[cfg(feature = "planted-bugs")]
            forgets_answers: AtomicBool::new(false),
        }
    }
}

impl NoRoom {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unproven => "unproven",
            Self::Peer => "peer",
            Self::Full => "full",
        }
    }
}

impl Hold {
    /// Replaces the memory of the request's head with `answer_bytes`. An answer larger than half of the limit counts as
    /// half of the limit, so only one such answer exists at a time.
    pub(super) fn answer(&mut self, answer_bytes: usize) -> Result<(), NoRoom> {
        #[cfg(feature = "planted-bugs")]
        if self.room.forgets_answers.load(Ordering::Relaxed) {
            self.room.sub(&self.peer, std::mem::take(&mut self.bytes));
            return Ok(());
        }
        let bytes = CALL_BYTES + answer_bytes.min(self.room.max() / 2);
        if bytes > self.bytes {
            self.room.add(&self.peer, bytes - self.bytes)?;
        } else {
            self.room.sub(&self.peer, self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.room.sub(&self.peer, self.bytes);
    }
}

pub(super) fn head_bytes<B>(request: &Request<B>) -> usize {
    let (headers, uri) = (request.headers(), request.uri());
    let fields: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let target = uri.authority().map_or(0, |authority| authority.as_str().len());
    let target = target + uri.path_and_query().map_or(0, |path| path.as_str().len());
    headers.capacity() * FIELD_BYTES + fields + target
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::edge::Accounts;

    #[test]
    fn a_call_counts_for_its_peer_and_for_all_and_is_given_back() {
        let (room, accounts) = (CallMemory::of(16 * CALL_BYTES), Accounts::default());
        let peer = |last| accounts.peer(Ipv4Addr::new(10, 0, 0, last).into(), None);
        let (greedy, other) = (peer(1), peer(2));
        let held: Vec<_> = (0..14).map(|_| room.hold(&greedy, 0).unwrap()).collect();
        assert_eq!(room.hold(&greedy, 0).unwrap_err(), NoRoom::Peer, "an eighth is left to others");
        let more: Vec<_> = (0..2).map(|_| room.hold(&other, 0).unwrap()).collect();
        assert_eq!(room.hold(&other, 0).unwrap_err(), NoRoom::Full);
        drop(held);
        assert_eq!(room.held_bytes(), 2 * CALL_BYTES);
        drop(more);
        assert_eq!(room.held_bytes(), 0);
        assert!(room.hold(&greedy, 13 * CALL_BYTES).is_ok(), "what was refused left no trace");
    }

    #[test]
    fn an_answer_takes_the_place_of_the_head() {
        let (room, accounts) = (CallMemory::of(64 * CALL_BYTES), Accounts::default());
        let peer = accounts.peer(Ipv4Addr::LOCALHOST.into(), None);
        let mut hold = room.hold(&peer, 1000).unwrap();
        hold.answer(300).unwrap();
        assert_eq!(room.held_bytes(), CALL_BYTES + 300);
        hold.answer(20 * CALL_BYTES).unwrap();
        assert_eq!(room.held_bytes(), 21 * CALL_BYTES);
        let mut large = room.hold(&peer, 0).unwrap();
        large.answer(usize::MAX).unwrap();
        assert_eq!(room.held_bytes(), (21 + 33) * CALL_BYTES, "counts as half of the room");
        let mut next = room.hold(&peer, 0).unwrap();
        assert_eq!(next.answer(20 * CALL_BYTES).unwrap_err(), NoRoom::Peer);
        drop((hold, large, next));
        assert_eq!(room.held_bytes(), 0);
    }

    #[cfg(feature = "planted-bugs")]
    #[test]
    fn a_room_that_forgets_answers_counts_calls_alone() {
        let (room, accounts) = (CallMemory::of(64 * CALL_BYTES), Accounts::default());
        let peer = accounts.peer(Ipv4Addr::LOCALHOST.into(), None);
        room.forget_answers();
        let mut hold = room.hold(&peer, 1000).unwrap();
        assert_eq!(room.held_bytes(), CALL_BYTES + 1000);
        hold.answer(usize::MAX).unwrap();
        assert_eq!(room.held_bytes(), 0);
        drop(hold);
        assert_eq!(room.held_bytes(), 0);
    }

    #[test]
    fn a_head_costs_its_fields_and_its_text() {
        let few = Request::get("https://a/b").header("x", "y").body(()).unwrap();
        let text = Request::get("https://a/b").header("x", "y".repeat(8000)).body(()).unwrap();
        assert_eq!(head_bytes(&text) - head_bytes(&few), 7999);
        let mut many = Request::get("https://a/b");
        for field in 0..200 {
            many = many.header(format!("x{field}"), "");
        }
        assert!(head_bytes(&many.body(()).unwrap()) > 200 * FIELD_BYTES);
    }
}
