//! Compares two sources: the answers to churn's writes, and the audit's watch. Pure: no I/O.
//!
//! Every successful write must appear in the watch. The watch may show further writes, because the subject and other
//! clients write too. The answer to a write may come before or after its event, so commits are remembered for some
//! time. A write without an event after that time ([`GRACE`]) is a disagreement. The caller passes the present time as
//! `now`.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Entry;
use super::history::NAMED_MAX;
use crate::churn::{Write, Writes};
use facts::{Change, Commit, Revision, Uid};

/// How long commits are remembered. A write may be answered half a minute after its commit, and the harness reads the
/// answer some time later.
pub const GRACE: Duration = Duration::from_secs(90);
/// Maximum number of remembered commits, about 40 MiB: 90 s at 2,000 commits a second.
const COMMITS_MAX: usize = 180_000;
/// Maximum number of writes that wait for their commit. With more waiting writes, the watch has shown no commits for a
/// long time.
const WAITING_MAX: usize = 180_000;

/// Compares commits and writes as they arrive. Memory is bounded by [`GRACE`] and a fixed number of commits.
#[derive(Debug, Default)]
pub struct Agreement {
    /// How often the watch showed each key; the same name can be deleted more than once. The map is never iterated.
    shown: HashMap<Key, u32>,
    /// The commits in order, with the times at which they are forgotten.
    order: VecDeque<(Instant, Key)>,
    /// Writes that wait for their commit, in order.
    waiting: VecDeque<Write>,
    outcome: Outcome,
}

/// The result of comparing writes with commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of writes that the watch showed.
    pub confirmed: u64,
    /// Number of writes that the watch never showed.
    pub unseen_total: u64,
    /// The first hundred writes that the watch never showed.
    pub unseen: Vec<Write>,
    /// Number of writes that could not be compared: churn did not record them, or too many were waiting.
    pub uncompared: u64,
    /// Number of commits that were dropped early, because too many were remembered. The writes of dropped commits count
    /// as never shown.
    pub forgotten: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Version { uid: Uid, revision: Revision },
    Gone { namespace: Arc<str>, name: Arc<str> },
}

impl Outcome {
    /// Whether the watch showed every write.
    pub fn agrees(&self) -> bool {
        self.unseen_total == 0 && self.uncompared == 0 && self.forgotten == 0
    }
}

impl fmt::Display for Outcome {
    /// Writes one line, then a line for each of the first writes that the watch never showed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        write!(f, "{} writes were confirmed by the audit, {} were not", self.confirmed, self.unseen_total)?;
        if self.uncompared > 0 {
            write!(f, ", {} could not be compared", self.uncompared)?;
        }
        if self.forgotten > 0 {
            write!(f, ", {} commits came too fast to be remembered", self.forgotten)?;
        }
        for write in self.unseen.iter().take(SHOWN) {
            write!(f, "\n  {write}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.change.event_type(), self.namespace, self.name)?;
        if let Some(uid) = &self.uid {
            write!(f, " (uid {uid})")?;
        }
        self.resource_version.as_ref().map_or(Ok(()), |version| write!(f, " at version {version}"))
    }
}

impl Agreement {
    /// Adds a commit that the watch showed.
    pub fn commit(&mut self, entry: &Entry) {
        let key = Key::shown(&entry.commit);
        if self.order.len() == COMMITS_MAX {
            self.outcome.forgotten += 1;
            self.forget();
        }
        self.order.push_back((entry.at, key.clone()));
        *self.shown.entry(key).or_default() += 1;
    }

    /// Adds churn's writes since the last call of this function.
    pub fn writes(&mut self, writes: Writes) {
        self.outcome.uncompared += writes.lost;
        for write in writes.writes {
            if self.is_shown(&write) {
                self.outcome.confirmed += 1;
            } else if self.waiting.len() == WAITING_MAX {
                self.outcome.uncompared += 1;
            } else {
                self.waiting.push_back(write);
            }
        }
    }

    /// Compares waiting writes, reports those that waited longer than [`GRACE`], and drops older commits. Call this
    /// function every few seconds, after all commits and writes were added.
    pub fn advance(&mut self, now: Instant) {
        for write in std::mem::take(&mut self.waiting) {
            if self.is_shown(&write) {
                self.outcome.confirmed += 1;
            } else if now.saturating_duration_since(write.at) > GRACE {
                self.unseen(write);
            } else {
                self.waiting.push_back(write);
            }
        }
        while self.order.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) > GRACE) {
            self.forget();
        }
    }

    /// Ends the comparison: writes that still wait count as never shown.
    pub fn finish(mut self) -> Outcome {
        for write in std::mem::take(&mut self.waiting) {
            if self.is_shown(&write) {
                self.outcome.confirmed += 1;
            } else {
                self.unseen(write);
            }
        }
        self.outcome
    }

    /// The result so far, without waiting writes.
    pub const fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn is_shown(&self, write: &Write) -> bool {
        Key::written(write).is_some_and(|key| self.shown.contains_key(&key))
    }

    fn unseen(&mut self, write: Write) {
        self.outcome.unseen_total += 1;
        if self.outcome.unseen.len() < NAMED_MAX {
            self.outcome.unseen.push(write);
        }
    }

    fn forget(&mut self) {
        let Some((_, key)) = self.order.pop_front() else { return };
        if let Some(count) = self.shown.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.shown.remove(&key);
            }
        }
    }
}

/// Compares commits with writes when both are complete.
pub fn agree(commits: &[Entry], writes: &[Write]) -> Outcome {
    let mut agreement = Agreement::default();
    for commit in commits {
        agreement.commit(commit);
    }
    agreement.writes(Writes { writes: writes.to_vec(), lost: 0 });
    agreement.finish()
}

impl Key {
    /// The key of a commit, by which its write is found. Added and changed versions have equal keys, because a patch
    /// without a change is answered with the previous version.
    fn shown(commit: &Commit) -> Self {
        match commit.change {
            Change::Deleted => Self::Gone { namespace: commit.namespace.clone(), name: commit.name.clone() },
            Change::Added | Change::Modified => {
                Self::Version { uid: commit.uid.clone(), revision: commit.revision.clone() }
            }
        }
    }

    /// The key of a write, by which its commit is found. A deletion has its name as the key, because its answer
    /// contains no version and not always a uid. Churn never uses a name for a second object.
    fn written(write: &Write) -> Option<Self> {
        match write.change {
            Change::Deleted => Some(Self::Gone { namespace: (*write.namespace).into(), name: (*write.name).into() }),
            Change::Added | Change::Modified => {
                let (uid, revision) = (write.uid.as_deref()?.into(), write.resource_version.as_deref()?.into());
                Some(Self::Version { uid, revision })
            }
        }
    }
}

#[cfg(test)]
mod tests;
