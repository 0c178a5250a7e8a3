//! The bounded queue between the watch and the reader of the commits.
//!
//! Owns the overrun: if the reader is too slow, the oldest commits are dropped, and the reader first gets their number.
//! A reader that asks for gaps gets each gap before the next commits.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Entry, Error, Hole};

/// Maximum number of gaps that wait for the reader.
const HOLES_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Notify,
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    commits: VecDeque<Entry>,
    lost: u64,
    /// Gaps that the reader has not got yet; empty if the reader does not ask for gaps.
    holes: VecDeque<Hole>,
    /// Why no further commits will come.
    end: Option<End>,
}

#[derive(Debug, Clone)]
enum End {
    Finished,
    Lost(String),
}

impl Queue {
    pub(super) fn new(most: usize) -> Self {
        Self { state: Mutex::default(), filled: Notify::new(), most: most.max(1) }
    }

    pub(super) fn push(&self, commits: impl IntoIterator<Item = Entry>) {
        {
            let mut state = self.state.lock();
            for commit in commits {
                if state.commits.len() == self.most {
                    state.commits.pop_front();
                    state.lost += 1;
                }
                state.commits.push_back(commit);
            }
        }
        self.filled.notify_waiters();
    }

    /// Puts a gap before the next commits. Gaps beyond [`HOLES_MAX`] are dropped, because the reader already knows that
    /// commits are missing.
    pub(super) fn tell(&self, hole: Hole) {
        {
            let mut state = self.state.lock();
            if state.holes.len() < HOLES_MAX {
                state.holes.push_back(hole);
            }
        }
        self.filled.notify_waiters();
    }

    /// Ends the queue after the audit was finished.
    pub(super) fn finish(&self) {
        self.end(End::Finished);
    }

    /// Ends the queue because the control plane cannot be reached. `reason` is a text for people.
    pub(super) fn lose(&self, reason: String) {
        self.end(End::Lost(reason));
    }

    fn end(&self, end: End) {
        self.state.lock().end.get_or_insert(end);
        self.filled.notify_waiters();
    }

    /// Why the queue ended early; `None` if it did not.
    pub(super) fn failure(&self) -> Option<Error> {
        match &self.state.lock().end {
            Some(End::Lost(problem)) => Some(Error::Lost { problem: problem.clone() }),
            _ => None,
        }
    }

    /// The available commits, oldest first. An error reports lost commits once; after the end of the queue, each call
    /// returns an error.
    pub(super) fn take(&self, max: usize) -> Result<Vec<Entry>, Error> {
        let mut state = self.state.lock();
        if state.lost > 0 {
            return Err(Error::Overrun { lost: std::mem::take(&mut state.lost) });
        }
        if let Some(hole) = state.holes.pop_front() {
            return Err(Error::Hole { hole: Box::new(hole) });
        }
        let count = state.commits.len().min(max);
        match (&state.end, state.commits.is_empty()) {
            (Some(End::Finished), true) => Err(Error::Finished),
            (Some(End::Lost(problem)), true) => Err(Error::Lost { problem: problem.clone() }),
            _ => Ok(state.commits.drain(..count).collect()),
        }
    }

    /// Waits for the first commit, then returns the available commits like [`take`](Self::take). Cancel-safe.
    pub(super) async fn next(&self, max: usize) -> Result<Vec<Entry>, Error> {
        loop {
            // Created before the check, so that no commit is missed in between.
            let filled = self.filled.notified();
            let batch = self.take(max)?;
            if !batch.is_empty() || max == 0 {
                return Ok(batch);
            }
            filled.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::audit::Source;
    use facts::{Change, Commit, Order, Progress};

    fn entry(order: u64) -> Entry {
        let commit = Commit {
            order: Order::of_numbered(order),
            resource: "pods".into(),
            namespace: "n".into(),
            name: "a".into(),
            uid: "u".into(),
            revision: order.to_string().into(),
            change: Change::Modified,
        };
        let (at, progress) = (Instant::now(), Progress::default());
        Entry { at, commit, progress, images: Vec::new(), fields: Vec::new(), source: Source::Watched }
    }

    #[tokio::test]
    async fn an_overrun_is_told_before_reading_goes_on() {
        let queue = Queue::new(3);
        queue.push((0..5).map(entry));
        assert!(matches!(queue.take(9), Err(Error::Overrun { lost: 2 })));
        let orders = |entries: Vec<Entry>| entries.iter().map(|entry| entry.commit.order.number()).collect::<Vec<_>>();
        assert_eq!(orders(queue.take(2).unwrap()), [2, 3]);
        assert_eq!(orders(queue.next(9).await.unwrap()), [4]);
        assert!(queue.take(9).unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_hole_is_told_to_who_waits_and_reading_goes_on() {
        let queue = Queue::new(3);
        let (from, until) = (Instant::now(), Instant::now());
        let (after, relisted, reason) = ("7".to_owned(), "9".to_owned(), "gone".to_owned());
        let hole = Hole { from, until, after, relisted, changes: 0, reason };
        let ((), read) = tokio::join!(async { queue.tell(hole.clone()) }, queue.next(9));
        assert!(matches!(read, Err(Error::Hole { hole: told }) if *told == hole));
        queue.push([entry(0)]);
        assert_eq!(queue.next(9).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_waiting_reader_gets_commits_and_the_end() {
        let queue = Queue::new(3);
        let ((), read) = tokio::join!(async { queue.push([entry(0)]) }, queue.next(9));
        assert_eq!(read.unwrap().len(), 1);
        queue.push([entry(1)]);
        queue.lose("gone".to_owned());
        queue.finish();
        assert_eq!(queue.next(9).await.unwrap().len(), 1, "what is there is read first");
        assert_eq!(queue.next(9).await.unwrap_err().to_string(), "the audit lost the control plane: gone");
        let queue = Queue::new(3);
        let ((), read) = tokio::join!(async { queue.finish() }, queue.next(9));
        assert!(matches!(read, Err(Error::Finished)));
    }
}
