//! The event log of one resource, and cursors into it.
//!
//! Owns positions; the store decides what is dropped. Sequence numbers count the events of this resource since the
//! start, so that a cursor stays valid while the front of the log is dropped.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Event;

/// A position in the log of one resource: the sequence number of the next event to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor(u64);

/// The log was compacted past the cursor: events are gone that it has not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost;

#[derive(Debug, Default)]
pub(super) struct Log {
    events: VecDeque<Arc<Event>>,
    dropped: u64,
}

impl Cursor {
    pub fn start() -> Self {
        Self(0)
    }
}

impl Log {
    pub fn push(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
    }

    pub fn drop_oldest(&mut self) {
        if self.events.pop_front().is_some() {
            self.dropped += 1;
        }
    }

    pub fn after(&self, revision: u64) -> Cursor {
        let index = self.events.partition_point(|event| event.version.revision <= revision);
        Cursor(self.dropped + index as u64)
    }

    /// Reads on; answers whether the cursor is drained.
    pub fn pull(&self, cursor: &mut Cursor, max: usize, through: u64, out: &mut Vec<Arc<Event>>) -> Result<bool, Lost> {
        let Some(index) = cursor.0.checked_sub(self.dropped) else { return Err(Lost) };
        let index = usize::try_from(index).map_err(|_| Lost)?;
        let before = out.len();
        let visible = |event: &&Arc<Event>| event.version.revision <= through;
        out.extend(self.events.range(index.min(self.events.len())..).take_while(visible).take(max).cloned());
        cursor.0 += (out.len() - before) as u64;
        Ok(out.len() - before < max || cursor.0 == self.dropped + self.events.len() as u64)
    }

    /// The events after `revision`, newest first.
    pub fn newest_first_until(&self, revision: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().rev().take_while(move |event| event.version.revision > revision)
    }
}
