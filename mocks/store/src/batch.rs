//! Batches of watch events: each batch is encoded once and shared by all watches that need the same events.
//!
//! Owns the newest batches. All watches of one resource that are woken together have the same position in the log. The
//! first of these watches reads the log, and the others take its batch without reading the store. This module must not
//! know how a batch is sent on a stream.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::{Cursor, Event, Lost, Most, ResourceId};

/// Maximum number of batches that are kept: enough for a few resources and for watches that are one batch behind.
const KEPT_MAX: usize = 8;
/// Limits of one batch: large enough that the cost of a socket write is spread over many events.
const MOST: Most = Most { events: 256, bytes: 256 * 1024 };

/// Watch events of one resource, in all namespaces or in one, encoded as they are sent.
#[derive(Debug)]
pub struct Batch {
    bytes: Bytes,
    /// The revisions of the events, ascending.
    revisions: Arc<[u64]>,
    /// The offset in `bytes` at which each event's line ends.
    ends: Box<[usize]>,
}

/// The answer to a watch that asks for its next batch.
#[derive(Debug)]
pub enum Next {
    Batch(Arc<Batch>),
    /// The log has no further event up to the requested revision.
    Nothing,
}

#[derive(Debug, Default)]
pub struct Batches {
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    resource: ResourceId,
    namespace: Option<Arc<str>>,
    from: Cursor,
    through: u64,
    to: Cursor,
    batch: Arc<Batch>,
}

impl Batches {
    /// The next batch for a watch at `cursor`; moves the cursor behind the batch. `pull` reads the log and returns
    /// whether no further event follows.
    pub fn next(
        &self,
        mut pull: impl FnMut(&mut Cursor, Most, &mut Vec<Arc<Event>>) -> Result<bool, Lost>,
        resource: ResourceId,
        namespace: Option<&str>,
        cursor: &mut Cursor,
        through: u64,
    ) -> Result<Next, Lost> {
        // Held while a batch is made, so that a concurrent watch waits for it instead of making it again.
        let mut kept = self.kept.lock();
        let same = |known: &&Kept| {
            known.from == *cursor
                && known.through == through
                && known.resource == resource
                && known.namespace.as_deref() == namespace
        };
        if let Some(known) = kept.iter().find(same) {
            *cursor = known.to;
            return Ok(Next::Batch(known.batch.clone()));
        }
        let from = *cursor;
        let mut events = Vec::new();
        loop {
            let drained = pull(cursor, MOST, &mut events)?;
            events.retain(|event| namespace.is_none_or(|wanted| wanted == &*event.version.identity.namespace));
            if !events.is_empty() {
                break;
            }
            if drained {
                return Ok(Next::Nothing);
            }
        }
        let batch = Arc::new(Batch::of(&events));
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        let namespace = namespace.map(|_| events[0].version.identity.namespace.clone());
        kept.push_back(Kept { resource, namespace, from, through, to: *cursor, batch: batch.clone() });
        Ok(Next::Batch(batch))
    }

    /// Removes all batches after a restore of the store.
    pub fn forget(&self) {
        self.kept.lock().clear();
    }
}

impl Batch {
    /// Encodes these events, of which there must be at least one.
    pub fn of(events: &[Arc<Event>]) -> Self {
        let revisions = events.iter().map(|event| event.version.revision).collect();
        if let [only] = events {
            let bytes = only.version.frame();
            return Self { revisions, ends: Box::new([bytes.len()]), bytes };
        }
        let mut bytes = Vec::with_capacity(events.iter().map(|event| event.version.frame_bytes()).sum());
        let mut ends = Vec::with_capacity(events.len());
        for event in events {
            event.version.append_frame(&mut bytes);
            ends.push(bytes.len());
        }
        Self { revisions, ends: ends.into(), bytes: bytes.into() }
    }

    /// The lines of all events, joined.
    #[inline]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The revisions of the events, ascending.
    #[inline]
    pub fn revisions(&self) -> &Arc<[u64]> {
        &self.revisions
    }

    #[inline]
    pub fn last(&self) -> u64 {
        self.revisions.last().copied().expect("a batch has an event")
    }

    /// The revision and the line of each event.
    #[inline]
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        self.revisions.iter().copied().zip(ranges.map(|(start, end)| &self.bytes[start..end]))
    }
}

#[cfg(test)]
mod tests;
