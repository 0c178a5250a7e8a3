//! The versions that a subject saw in a comparison: the lag of each, to the microsecond, and the missing versions by
//! the ledger's rules.
//!
//! Used for a comparison, not for a verdict: no run record contains the figures of this module. Each period of churn
//! has its own ledger, because no object outlives the period.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use facts::{Change, Commit, Observation, Order, Revision, Uid};
use parking_lot::Mutex;
use reports::ledger::{self, Ledger};
use reports::record::EventCounts;

use crate::clock::Clock;
use crate::run::claims::Claims;
use crate::run::feed::{Entry, Feed};
use crate::witness::{Counts, Reported, Statement};

/// Maximum number of commits without an observation. If a subject lags behind by more than this number of commits, the
/// measurement stops.
const WAITING_MAX: usize = 65_536;
/// Maximum number of lags kept for one period of churn.
const KEPT_MAX: usize = 65_536;
/// Maximum number of commits read in one batch.
const BATCH_MAX: usize = 1024;

/// The account, shared by the task that follows the subject and by the readers of the account.
pub(super) type Shared = Arc<Mutex<Account>>;

/// A gap in the subject's watch stream that a new list has closed, as the control plane reports it.
pub(super) struct Hole {
    pub(super) resource: String,
    pub(super) after: Order,
    pub(super) through: Order,
}

/// The result of one period of churn.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChurnResult {
    pub(crate) counts: EventCounts,
    /// Times from commit to observation, for commits during the measurement, up to a limit.
    pub(crate) lags: Vec<Duration>,
    /// The reason why the figures are not valid; `None` if the figures are valid.
    pub(crate) broken: Option<String>,
}

/// Commits without an observation, and the ledger.
pub(super) struct Account {
    config: ledger::Config,
    ledger: Ledger,
    claims: Claims,
    clock: Clock,
    /// Whether commits are known immediately after the write.
    at_hand: bool,
    /// Time since which lags are measured; `None` while lags are not measured.
    measures: Option<Instant>,
    waiting: HashMap<(Uid, Revision), Instant>,
    seen: ChurnResult,
}

impl Account {
    pub(super) fn new(config: ledger::Config, claims: Claims, clock: Clock, at_hand: bool) -> Shared {
        let ledger = Ledger::new(config.clone());
        let (waiting, seen) = (HashMap::new(), ChurnResult::default());
        Arc::new(Mutex::new(Self { config, ledger, claims, clock, at_hand, measures: None, waiting, seen }))
    }

    /// Begins a period of churn, and drops earlier commits. A subject that skipped a version will not report this
    /// version any more.
    pub(super) fn begin(&mut self) {
        self.ledger = Ledger::new(self.config.clone());
        self.waiting.clear();
        self.measures = None;
        self.seen = ChurnResult { broken: self.seen.broken.take(), ..ChurnResult::default() };
    }

    /// Starts or stops to measure the lag of later commits.
    pub(super) fn measure(&mut self, on: bool) {
        self.measures = on.then(Instant::now);
    }

    /// Advances the ledger's time. Returns the number of waiting versions and the number of observations.
    pub(super) fn look(&mut self) -> (u64, u64) {
        let now_ms = self.clock.now_ms();
        for observation in self.claims.look_again(false, now_ms, self.at_hand) {
            self.saw(&observation, Instant::now());
        }
        // Decisions are in the counts; a gate names no single object.
        drop(self.ledger.advance(now_ms));
        (self.ledger.pending(), self.ledger.counts().observations)
    }

    /// Ends the period of churn, and returns the outcomes of all its commits.
    pub(super) fn finish(&mut self, holes: Vec<Hole>) -> ChurnResult {
        let now_ms = self.clock.now_ms();
        for observation in self.claims.look_again(true, now_ms, self.at_hand) {
            self.saw(&observation, Instant::now());
        }
        for Hole { resource, after, through } in holes {
            self.ledger.gap(&resource, after, through);
        }
        drop(self.ledger.finish(now_ms));
        self.seen.counts = self.ledger.counts();
        if self.ledger.contradictions() > 0 {
            self.seen.broken = Some("the control plane's commits contradict each other".to_owned());
        }
        let next = ChurnResult { broken: self.seen.broken.clone(), ..ChurnResult::default() };
        std::mem::replace(&mut self.seen, next)
    }

    fn committed(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            let t_ms = self.clock.at_ms(entry.at);
            let (counts, proves) = self.claims.read(&entry, t_ms);
            let Entry { at, commit, .. } = entry;
            match counts {
                Counts::No => {}
                Counts::Version => self.wrote(t_ms, at, &commit),
                Counts::Leaving => self.wrote(t_ms, at, &Commit { change: Change::Deleted, ..commit }),
                Counts::Untold => self.ledger.commit_untold(t_ms, &commit),
            }
            if let Some(observation) = proves {
                self.saw(&observation, at);
            }
        }
    }

    fn wrote(&mut self, t_ms: u64, at: Instant, commit: &Commit) {
        self.ledger.commit(t_ms, commit);
        if self.measures.is_some_and(|from| from <= at) && self.waiting.len() < WAITING_MAX {
            self.waiting.insert((commit.uid.clone(), commit.revision.clone()), at);
        }
    }

    fn saw(&mut self, observation: &Observation, now: Instant) {
        self.ledger.observe(observation);
        let key = (observation.uid.clone(), observation.revision.clone());
        let Some(at) = self.waiting.remove(&key) else { return };
        if self.seen.lags.len() < KEPT_MAX {
            self.seen.lags.push(now.saturating_duration_since(at));
        }
    }

    fn received(&mut self, statement: Statement, now: Instant) {
        let observation = match statement {
            Statement::Saw(observation) => Some(observation),
            Statement::Claims(claim) => self.claims.claimed(claim, self.at_hand),
            Statement::Deaf(why) => {
                self.seen.broken = Some(why);
                None
            }
        };
        if let Some(observation) = observation {
            self.saw(&observation, now);
        }
    }
}

/// Reads commits and observations until the future is dropped. If the harness falls behind, the measurement stops.
pub(super) async fn follow(mut feed: Feed, mut reported: Reported, account: Shared) {
    loop {
        tokio::select! {
            biased;
            batch = feed.next(BATCH_MAX) => match batch {
                Ok(batch) => account.lock().committed(batch),
                Err(error) => {
                    account.lock().seen.broken = Some(format!("{error:#}"));
                    break;
                }
            },
            statement = reported.statements.recv() => {
                let (Some(statement), now) = (statement, Instant::now()) else { break };
                let mut account = account.lock();
                // No observation is processed before its commit.
                while let Ok(Some(batch)) = feed.ready(BATCH_MAX) {
                    account.committed(batch);
                }
                account.received(statement, now);
            }
        }
    }
    // The witness's senders must not wait for the harness.
    while reported.statements.recv().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use facts::Progress;

    use super::*;

    fn entry(at: Instant, order: u64, change: Change) -> Entry {
        let commit = Commit {
            resource: "packages.longhaul.dev".into(),
            namespace: "lh".into(),
            name: "a".into(),
            uid: Uid::from("a"),
            revision: Revision::from(order.to_string().as_str()),
            order: Order::of_numbered(order),
            change,
        };
        Entry { at, commit, progress: Progress::default(), restored: false }
    }

    fn saw(t_ms: u64, revision: &str, change: Change) -> Statement {
        Statement::Saw(Observation { t_ms, uid: Uid::from("a"), revision: Revision::from(revision), change })
    }

    /// The lag of each commit is measured once, and only during the measurement. The ledger counts missed commits.
    #[test]
    fn what_was_seen_and_what_was_not() {
        let clock = Clock::default();
        let now = Instant::now();
        clock.start(now);
        let config = ledger::Config { numeric_revisions: true, ..ledger::Config::default() };
        let account = Account::new(config, Claims::of(None), clock, true);
        let mut account = account.lock();
        account.begin();
        account.committed(vec![entry(now, 1, Change::Added)]);
        account.received(saw(1, "1", Change::Added), now + Duration::from_millis(1));
        account.measure(true);
        let at = Instant::now();
        account.committed(vec![entry(at, 2, Change::Modified)]);
        account.received(saw(3, "2", Change::Modified), at + Duration::from_millis(3));
        account.received(saw(9, "2", Change::Modified), at + Duration::from_millis(9));
        account.committed(vec![entry(at, 3, Change::Deleted)]);
        assert_eq!(account.look(), (1, 3));
        let seen = account.finish(Vec::new());
        assert_eq!(seen.lags, [Duration::from_millis(3)]);
        assert_eq!((seen.counts.commits, seen.counts.ghost, seen.counts.duplicate), (3, 1, 1));
        account.begin();
        assert_eq!(account.finish(Vec::new()).counts.commits, 0);
    }
}
