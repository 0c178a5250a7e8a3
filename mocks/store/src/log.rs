//! The event log of one resource, and cursors into the log.
//!
//! Owns the positions in a log; the store decides which events are dropped. Sequence numbers count the events of one
//! resource since the start, so a cursor stays valid while old events are dropped. A cursor also stores the revision up
//! to which it has passed all events. After a restore of the store, a cursor yields no event up to that revision.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Event;

/// A position in the log of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The sequence number of the next event to read.
    next: u64,
    /// The revision up to which the reader has read all events.
    after: u64,
    /// The number of restores of the log before the cursor's last read.
    rewinds: u32,
}

/// Error: the limits of the history dropped events that the cursor has not read. A compaction alone drops no unread
/// event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// The limits of one read of a log.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    pub events: usize,
    /// A soft limit in bytes: the event that exceeds it is still read.
    pub bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    events: VecDeque<Arc<Event>>,
    dropped: u64,
    dropped_through: u64,
    rewinds: u32,
    /// The end of the log before its last restore, and the store's revision before the restore. A reader at that end
    /// had read all events up to that revision.
    end_before: (u64, u64),
}

impl Cursor {
    /// A cursor into an empty log, whose reader has read all events up to revision `after`.
    pub fn start(after: u64) -> Self {
        Self { next: 0, after, rewinds: 0 }
    }

    /// The revision up to which the reader has read all events.
    #[inline]
    pub fn after(&self) -> u64 {
        self.after
    }
}

impl Log {
    pub(crate) fn push(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
    }

    pub(crate) fn drop_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.dropped += 1;
            self.dropped_through = event.version.revision;
        }
    }

    /// Removes the events after revision `to`; `from` is the store's revision before the restore.
    pub(crate) fn rewind(&mut self, to: u64, from: u64) {
        self.end_before = (self.end(), from);
        self.rewinds += 1;
        while self.events.back().is_some_and(|event| event.version.revision > to) {
            self.events.pop_back();
        }
    }

    pub(crate) fn after(&self, revision: u64) -> Cursor {
        let index = self.events.partition_point(|event| event.version.revision <= revision);
        Cursor { next: self.dropped + index as u64, after: revision, rewinds: self.rewinds }
    }

    /// Appends events after the cursor to `out`; returns whether no further event follows.
    pub(crate) fn pull(
        &self,
        cursor: &mut Cursor,
        most: Most,
        through: u64,
        out: &mut Vec<Arc<Event>>,
    ) -> Result<bool, Lost> {
        if cursor.rewinds != self.rewinds {
            self.follow(cursor)?;
        }
        let Some(index) = cursor.next.checked_sub(self.dropped) else { return Err(Lost) };
        let mut index = usize::try_from(index).map_err(|_| Lost)?.min(self.events.len());
        // There are events to skip only after a restore.
        while self.events.get(index).is_some_and(|event| event.version.revision <= cursor.after) {
            index += 1;
        }
        let (before, mut bytes) = (out.len(), 0);
        let mut full = false;
        for event in self.events.range(index..) {
            if event.version.revision > through {
                break;
            }
            full = out.len() - before == most.events || bytes >= most.bytes;
            if full {
                break;
            }
            bytes += event.version.frame_bytes();
            out.push(event.clone());
        }
        let taken = out.len() - before;
        cursor.next = self.dropped + (index + taken) as u64;
        if let Some(last) = out.last().filter(|_| taken > 0) {
            cursor.after = last.version.revision;
        }
        Ok(!full)
    }

    pub(crate) fn newest_first_until(&self, revision: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().rev().take_while(move |event| event.version.revision > revision)
    }

    /// The sequence number of the next event.
    fn end(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    /// Moves a cursor from before the last restore to its position in the restored log.
    fn follow(&self, cursor: &mut Cursor) -> Result<(), Lost> {
        let (end, from) = self.end_before;
        let known = if cursor.next >= end { cursor.after.max(from) } else { cursor.after };
        if known < self.dropped_through {
            return Err(Lost);
        }
        *cursor = self.after(known);
        Ok(())
    }
}
