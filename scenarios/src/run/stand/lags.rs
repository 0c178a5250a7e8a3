//! How long a subject takes to see what is committed, to the microsecond: for a comparison, not for a verdict.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use facts::{Revision, Uid};
use parking_lot::Mutex;

use crate::run::feed::{Entry, Feed};
use crate::witness::{Heard, Said};

/// Commits that may wait for their observation; of a subject that is so far behind nothing more is measured.
const WAITING_MAX: usize = 65_536;
/// Lags that are kept between two looks.
const KEPT_MAX: usize = 65_536;
/// Commits that are taken at a time.
const BATCH_MAX: usize = 1024;

/// What was seen since the last look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Observations of what was committed.
    pub(crate) events: u64,
    /// From the commit to the observation, up to a bound.
    pub(crate) lags: Vec<Duration>,
    /// Commits that wait.
    pub(crate) waiting: usize,
}

/// Shared between the task that follows and whoever looks.
pub(super) type Lags = Arc<Mutex<Account>>;

/// What waits, and what was seen.
#[derive(Default)]
pub(super) struct Account {
    waiting: HashMap<(Uid, Revision), Instant>,
    seen: Seen,
}

impl Account {
    /// What was seen since the last call.
    pub(super) fn take(&mut self) -> Seen {
        let waiting = self.waiting.len();
        Seen { waiting, ..std::mem::take(&mut self.seen) }
    }

    /// Forgets what waits: whoever skipped a version will not tell of it any more.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }

    fn committed(&mut self, entries: Vec<Entry>) {
        for Entry { at, commit, .. } in entries {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.insert((commit.uid, commit.revision), at);
            }
        }
    }

    fn observed(&mut self, key: &(Uid, Revision), now: Instant) {
        let Some(at) = self.waiting.remove(key) else { return };
        self.seen.events += 1;
        if self.seen.lags.len() < KEPT_MAX {
            self.seen.lags.push(now.saturating_duration_since(at));
        }
    }
}

/// Follows commits and observations until it is dropped, or the harness falls behind: then nothing more is measured.
pub(super) async fn follow(mut feed: Feed, mut heard: Heard, lags: Lags) {
    loop {
        tokio::select! {
            biased;
            batch = feed.next(BATCH_MAX) => match batch {
                Ok(batch) => lags.lock().committed(batch),
                Err(_) => break,
            },
            said = heard.said.recv() => {
                let (Some(said), now) = (said, Instant::now()) else { break };
                // Only who names a version tells when it saw that one.
                let Said::Saw(observation) = said else { continue };
                // No observation is looked at before its commit.
                while let Ok(Some(batch)) = feed.ready(BATCH_MAX) {
                    lags.lock().committed(batch);
                }
                lags.lock().observed(&(observation.uid, observation.revision), now);
            }
        }
    }
    // Whoever posts must not wait for us.
    while heard.said.recv().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_commit_is_measured_once() {
        let now = Instant::now();
        let key = |uid: &str, revision: &str| (Uid::from(uid), Revision::from(revision));
        let mut account = Account::default();
        account.waiting.insert(key("a", "1"), now);
        account.waiting.insert(key("b", "2"), now);
        account.observed(&key("a", "1"), now + Duration::from_millis(3));
        account.observed(&key("a", "1"), now + Duration::from_millis(9));
        account.observed(&key("never", "1"), now);
        let seen = account.take();
        assert_eq!((seen.events, seen.lags, seen.waiting), (1, vec![Duration::from_millis(3)], 1));
        account.forget();
        assert_eq!((account.take().events, account.take().waiting), (0, 0));
    }
}
