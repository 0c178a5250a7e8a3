//! The event log of one resource, and cursors into it.
//!
//! Owns positions; the store decides what is dropped. Sequence numbers count the events of this resource since the
//! start, so that a cursor stays valid while the front of the log is dropped. A cursor also knows the revision up to
//! which it has seen everything: when the store goes back in time, it hears nothing until the counter has passed that.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Event;

/// A position in the log of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The sequence number of the next event to read.
    next: u64,
    /// Events up to this revision are known to the reader.
    after: u64,
    /// How often the log had gone back when the cursor read last.
    rewinds: u32,
}

/// The limits of the history dropped events that the cursor has not read; a compaction alone drops none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// How much is read at a time.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// So many events, and no more.
    pub events: usize,
    /// The event that goes past it is still read.
    pub bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    events: VecDeque<Arc<Event>>,
    dropped: u64,
    dropped_through: u64,
    rewinds: u32,
    /// The end of the log before it went back last, and the store's revision then: who had read up to there, had seen
    /// that revision.
    end_before: (u64, u64),
}

impl Cursor {
    /// A cursor into an empty log for a reader that knows everything up to `after`.
    pub fn start(after: u64) -> Self {
        Self { next: 0, after, rewinds: 0 }
    }

    /// The revision up to which the reader has been given everything.
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

    /// Forgets the events after revision `to`; `from` is the store's revision before.
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

    /// Reads on; answers whether the cursor is drained.
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
        // Only after the store went back is there anything to pass over.
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

    /// The events after `revision`, newest first.
    pub(crate) fn newest_first_until(&self, revision: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().rev().take_while(move |event| event.version.revision > revision)
    }

    /// The sequence number that the next event gets.
    fn end(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    /// Finds the place again of a cursor from before the log went back.
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
