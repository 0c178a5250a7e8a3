//! The delivery progress of one watch, measured by bytes that left the process.
//!
//! Distinguishes bytes that the HTTP library has from bytes that were flushed to the socket. The connection counts its
//! completed flushes. If the library got bytes before a flush that has completed, the bytes have left the process.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// If a reset comes more than this many microseconds after a flush, the flushed bytes count as read. A reset discards
/// bytes that the client's kernel holds unread.
const READ_WITHIN_US: u64 = 1_000_000;
/// Marks within this time, in microseconds, are merged into one mark, so that the last second has only a few marks.
const GRAIN_US: u64 = 100_000;

#[derive(Debug)]
pub(crate) struct Delivered {
    /// Number of completed flushes of the connection, which continues to rise after the watch ends.
    flushes: Arc<AtomicU64>,
    /// The revision up to which the client had all versions before this watch.
    start: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Pairs of a revision and the number of flushes that had completed when the library got that revision.
    pending: VecDeque<(u64, u64)>,
    /// Marks of revisions that left the process, oldest first. The first mark is older than [`READ_WITHIN_US`].
    left: VecDeque<Mark>,
    reset_us: Option<u64>,
}

/// At `at_us`, all versions up to `revision` had left the process. Marks that are close in time are merged into one
/// mark, which began at `since_us`.
#[derive(Debug, Clone, Copy)]
struct Mark {
    revision: u64,
    at_us: u64,
    since_us: u64,
}

impl Delivered {
    pub fn new(start: u64, flushes: Arc<AtomicU64>) -> Self {
        let left = VecDeque::from([Mark { revision: start, at_us: 0, since_us: 0 }]);
        Self { flushes, start, inner: Mutex::new(Inner { pending: VecDeque::new(), left, reset_us: None }) }
    }

    /// The revision up to which the client had all versions before this watch.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Records that the HTTP library now has all versions up to `revision`.
    pub fn handed(&self, revision: u64, now_us: u64) {
        let flushes = self.flushes.load(Ordering::Acquire);
        let mut inner = self.inner.lock();
        inner.settle(flushes, now_us);
        match inner.pending.back_mut() {
            Some(last) if last.1 == flushes => last.0 = last.0.max(revision),
            _ => inner.pending.push_back((revision, flushes)),
        }
    }

    /// Adds marks for the flushes that have completed since the last call.
    pub fn settle(&self, now_us: u64) {
        self.inner.lock().settle(self.flushes.load(Ordering::Acquire), now_us);
    }

    /// Records that the store was restored to revision `to`: deliveries of higher revisions do not count in the new
    /// timeline.
    pub fn rewound(&self, to: u64) {
        let mut inner = self.inner.lock();
        for (revision, _) in &mut inner.pending {
            *revision = (*revision).min(to);
        }
        for mark in &mut inner.left {
            mark.revision = mark.revision.min(to);
        }
    }

    /// Records that the stream was reset: the client may not have read bytes that left the process within the last
    /// second.
    pub fn was_reset(&self, now_us: u64) {
        self.inner.lock().reset_us = Some(now_us);
    }

    /// The revision up to which the client got all versions.
    pub fn through(&self, now_us: u64) -> u64 {
        let mut inner = self.inner.lock();
        let Some(reset_us) = inner.reset_us else {
            inner.settle(self.flushes.load(Ordering::Acquire), now_us);
            return inner.left.back().map_or(0, |mark| mark.revision);
        };
        let read_by_us = reset_us.saturating_sub(READ_WITHIN_US);
        inner.left.iter().rev().find(|mark| mark.at_us <= read_by_us).map_or(0, |mark| mark.revision)
    }
}

impl Inner {
    fn settle(&mut self, flushes: u64, now_us: u64) {
        while let Some(&(revision, mark)) = self.pending.front() {
            if mark >= flushes {
                break;
            }
            self.pending.pop_front();
            match self.left.back_mut() {
                // The first entry is the start, which must stay.
                Some(last) if last.at_us != 0 && now_us.saturating_sub(last.since_us) < GRAIN_US => {
                    // The later time stands, so that a delivery is never dated too early.
                    last.revision = last.revision.max(revision);
                    last.at_us = now_us;
                }
                _ => self.left.push_back(Mark { revision, at_us: now_us, since_us: now_us }),
            }
        }
        while self.left.len() > 1 && self.left[1].at_us + READ_WITHIN_US <= now_us {
            self.left.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_flushed_later_counts() {
        let flushes = Arc::new(AtomicU64::new(3));
        let delivered = Delivered::new(5, flushes.clone());
        delivered.handed(7, 10);
        assert_eq!(delivered.through(20), 5);
        flushes.store(4, Ordering::Release);
        assert_eq!(delivered.through(30), 7);
    }

    #[test]
    fn a_reset_takes_back_the_last_second() {
        let flushes = Arc::new(AtomicU64::new(0));
        let delivered = Delivered::new(5, flushes.clone());
        delivered.handed(7, 100);
        flushes.store(1, Ordering::Release);
        delivered.settle(200);
        delivered.handed(8, 900_000);
        flushes.store(2, Ordering::Release);
        delivered.settle(900_001);
        delivered.was_reset(1_000_300);
        assert_eq!(delivered.through(9_000_000), 7);
    }

    #[test]
    fn a_steady_stream_still_ages() {
        let flushes = Arc::new(AtomicU64::new(0));
        let delivered = Delivered::new(0, flushes.clone());
        for step in 1..=300 {
            delivered.handed(step, step * 10_000);
            flushes.store(step, Ordering::Release);
            delivered.settle(step * 10_000 + 1);
        }
        delivered.was_reset(3_000_001);
        let through = delivered.through(3_000_001);
        assert!((180..=200).contains(&through), "{through}");
    }
}
