//! A comparison of two witnesses: the answers to churn's writes, and the audit's watch. Pure.
//!
//! Every successful write must be in the watch. The reverse need not hold: the subject and others write too. Commits
//! are remembered for a while, because the answer to a write may come before or after its event; a write without its
//! event after that time is a disagreement. It takes `now` as an argument and knows no clock.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Entry;
use super::history::NAMED_MAX;
use crate::churn::{Write, Writes};
use facts::{Change, Commit, Revision, Uid};

/// The time that commits are remembered: a write may be answered half a minute after its commit, and is read some time
/// later.
pub const GRACE: Duration = Duration::from_secs(90);
/// The most commits remembered, about 40 MiB: 90 s at 2,000 a second.
const COMMITS_MAX: usize = 180_000;
/// Writes that may wait for their commit. More means that the audit has seen nothing for a long time.
const WAITING_MAX: usize = 180_000;

/// Compares commits and writes as they come in. Memory is bounded by [`GRACE`] and a fixed number of commits.
#[derive(Debug, Default)]
pub struct Agreement {
    /// How often each key was shown; one name can be deleted more than once. Never iterated.
    shown: HashMap<Key, u32>,
    /// In the order of the commits.
    order: VecDeque<(Instant, Key)>,
    /// In the order of the writes.
    waiting: VecDeque<Write>,
    outcome: Outcome,
}

/// The result of the comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Writes that the audit showed.
    pub confirmed: u64,
    /// Writes that the audit never showed.
    pub unseen_total: u64,
    /// The first hundred unseen writes.
    pub unseen: Vec<Write>,
    /// Writes that could not be compared: not recorded by churn, or more than may wait.
    pub uncompared: u64,
    /// Commits that were dropped before their time, because there were too many. Their writes count as unseen.
    pub forgotten: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Version { uid: Uid, revision: Revision },
    Gone { namespace: Arc<str>, name: Arc<str> },
}

impl Outcome {
    /// Whether both witnesses agree on every write.
    pub fn agrees(&self) -> bool {
        self.unseen_total == 0 && self.uncompared == 0 && self.forgotten == 0
    }
}

impl fmt::Display for Outcome {
    /// One line, then one for each of the first few writes that were not shown.
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
    /// A commit that the audit showed.
    pub fn commit(&mut self, entry: &Entry) {
        let key = Key::shown(&entry.commit);
        if self.order.len() == COMMITS_MAX {
            self.outcome.forgotten += 1;
            self.forget();
        }
        self.order.push_back((entry.at, key.clone()));
        *self.shown.entry(key).or_default() += 1;
    }

    /// Takes churn's writes since the last call.
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

    /// Checks waiting writes, names those that waited longer than [`GRACE`], and drops commits that are older than
    /// that. Call it every few seconds, after the commits and writes so far were passed on.
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

    /// The end: writes that still wait were never shown.
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
    /// A version is the same whether it was shown as added or changed: a patch without a change is answered with the
    /// version before.
    fn shown(commit: &Commit) -> Self {
        match commit.change {
            Change::Deleted => Self::Gone { namespace: commit.namespace.clone(), name: commit.name.clone() },
            Change::Added | Change::Modified => {
                Self::Version { uid: commit.uid.clone(), revision: commit.revision.clone() }
            }
        }
    }

    /// A deletion is identified by its name, because its answer has no version and not always a uid. Churn never uses a
    /// name for a second object.
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
