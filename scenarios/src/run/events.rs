//! Passes commits and observations to the ledger, and the ledger's results to the record.

use anyhow::{Result, bail};
use facts::{Change, Commit, Observation, Order, Revision, Uid};
use loadgen::churn::Writes;
use mock_faults::Fault;
use mock_kube::Sending;
use reports::ledger::{self, Ledger};
use reports::record::{Audited, Backlog, CommitEvent, EventCounts, HOLE_DETAIL_MAX, Hole, RequestRow, Writer};

use super::arrival::{self, Arrivals};
use super::claims::Claims;
use super::evidence::{Dossiers, Requested, Sources};
use super::feed::{Entry, Feed, Unseen};
use super::plane::Plane;
use crate::clock::Clock;
use crate::witness::{Commits, Counts, Statement};

/// Maximum number of commits read from the control plane in one batch.
const BATCH_MAX: usize = 1024;
/// The deadline for observations in ms until the warm-up has shown the usual lag (`events.md`: at least 5 s).
pub(super) const DEADLINE_MIN_MS: u64 = 5000;
/// The deadline as a multiple of the p99 lag of the warm-up, without faults.
const DEADLINE_FACTOR: u64 = 3;

/// A complete drain. A version that was written before the drain and not observed by its end is missed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drained {
    /// Begin of the drain, in which only the subject wrote.
    pub(super) from_ms: u64,
    /// Time until which the subject's witness was read.
    pub(super) to_ms: u64,
}

pub(super) struct Events<'a> {
    plane: &'a Plane,
    feed: Feed,
    ledger: Ledger,
    clock: Clock,
    claims: Claims,
    faults: &'a [Fault],
    deadline_fixed: bool,
    deadline_ms: u64,
    /// Whether commits arrive in the order of their revisions.
    ordered: bool,
    dossiers: Dossiers,
    arrivals: Arrivals<'a>,
}

impl<'a> Events<'a> {
    pub(super) fn new(
        plane: &'a Plane,
        feed: Feed,
        clock: Clock,
        deadline_ms: Option<u64>,
        witness: Option<Box<dyn Commits>>,
        deletions_observable: bool,
        faults: &'a [Fault],
    ) -> Self {
        let first_ms = deadline_ms.unwrap_or(DEADLINE_MIN_MS);
        let ordered = feed.is_numeric();
        let ledger = Ledger::new(ledger::Config {
            deadline_ms: first_ms,
            numeric_revisions: ordered,
            deletions_observable,
            ..ledger::Config::default()
        });
        Self {
            plane,
            feed,
            ledger,
            clock,
            claims: Claims::of(witness),
            faults,
            deadline_fixed: deadline_ms.is_some(),
            deadline_ms: first_ms,
            ordered,
            dossiers: Dossiers::default(),
            arrivals: Arrivals::of(faults),
        }
    }

    /// Waits for commits, and passes them to the ledger.
    pub(super) async fn committed(&mut self, writer: &mut Writer) -> Result<()> {
        let batch = self.feed.next(BATCH_MAX).await?;
        self.enter(&batch, writer)
    }

    /// Passes all existing commits to the ledger, so that no observation reaches the ledger before its commit.
    fn catch_up(&mut self, writer: &mut Writer) -> Result<()> {
        while let Some(batch) = self.feed.ready(BATCH_MAX)? {
            self.enter(&batch, writer)?;
        }
        Ok(())
    }

    fn enter(&mut self, batch: &[Entry], writer: &mut Writer) -> Result<()> {
        for entry in batch {
            let t_ms = self.clock.at_ms(entry.at);
            let (counts, proves) = self.claims.read(entry, t_ms);
            // Versions that a deletion proves are entered before the deletion, which settles all versions of the
            // object.
            let (before, after) = match proves {
                Some(seen) if entry.commit.change == Change::Deleted && seen.change != Change::Deleted => {
                    (Some(seen), None)
                }
                proves => (None, proves),
            };
            if let Some(seen) = before {
                self.proved(&seen);
            }
            self.commit(t_ms, entry, counts, writer)?;
            if let Some(seen) = after {
                self.proved(&seen);
            }
        }
        Ok(())
    }

    fn commit(&mut self, t_ms: u64, entry: &Entry, counts: Counts, writer: &mut Writer) -> Result<()> {
        let Entry { commit, restored, .. } = entry;
        if commit.change == Change::Deleted && counts != Counts::No {
            self.look_for(&commit.uid, t_ms, true);
        }
        match counts {
            Counts::No => return Ok(()),
            Counts::Version if *restored => self.ledger.restore(t_ms, commit),
            Counts::Version => self.ledger.commit(t_ms, commit),
            // If a finalizer delays a deletion, the subject must observe the deletion request.
            Counts::Leaving => self.ledger.commit(t_ms, &Commit { change: Change::Deleted, ..commit.clone() }),
            Counts::Untold => self.ledger.commit_untold(t_ms, commit),
        }
        let event = CommitEvent { t_ms, commit: commit.clone() };
        self.dossiers.committed(&event);
        writer.commit(&event)?;
        Ok(())
    }

    /// Passes the writes that the churn reports to the audit of a real control plane.
    pub(super) fn wrote(&mut self, writes: Option<Writes>) {
        self.feed.wrote(writes);
    }

    /// Waits for the last report of the audit of a real control plane. Returns the gaps in the audit.
    pub(super) async fn confirm(&mut self, writer: &mut Writer) -> Result<Vec<Hole>> {
        let mut unseen = self.feed.confirm().await?;
        self.catch_up(writer)?;
        unseen.extend(self.feed.agreed());
        let now_ms = self.clock.now_ms();
        let hole = |Unseen { between, mut why }: Unseen| {
            let (from_ms, to_ms) =
                between.map_or((0, now_ms), |(from, until)| (self.clock.at_ms(from), self.clock.at_ms(until)));
            why.truncate(why.floor_char_boundary(HOLE_DETAIL_MAX));
            Hole { of: Audited::Commits, from_ms, to_ms, detail: why }
        };
        Ok(unseen.into_iter().map(hole).collect())
    }

    /// Passes observations to the ledger, after all earlier commits.
    pub(super) fn observed(&mut self, statements: &mut Vec<Statement>, writer: &mut Writer) -> Result<()> {
        self.catch_up(writer)?;
        for statement in statements.drain(..) {
            match statement {
                Statement::Saw(observation) => self.observe(&observation, writer)?,
                Statement::Claims(claim) => {
                    if let Some(observation) = self.claims.claimed(claim, self.feed.is_at_hand()) {
                        self.observe(&observation, writer)?;
                    }
                }
                Statement::Deaf(why) => bail!("{why}"),
            }
        }
        Ok(())
    }

    fn observe(&mut self, observation: &Observation, writer: &mut Writer) -> Result<()> {
        self.proved(observation);
        writer.observation(observation)?;
        Ok(())
    }

    fn proved(&mut self, observation: &Observation) {
        self.look_for(&observation.uid, observation.t_ms, false);
        self.dossiers.reported(observation);
        self.ledger.observe(observation);
    }

    /// Reports to the ledger how faults affected the delivery of an object's overdue versions, before the ledger
    /// decides. With `ends` the object is deleted, so the subject cannot have seen versions that a fault delayed beyond
    /// the deletion.
    fn look_for(&mut self, uid: &Uid, now_ms: u64, ends: bool) {
        if !self.arrivals.matter(ends) {
            return;
        }
        let overdue = self.ledger.overdue_of(uid, now_ms);
        let Some(first) = overdue.first() else { return };
        let sources = Sources { plane: self.plane, clock: &self.clock, faults: self.faults, ordered: self.ordered };
        let sendings = sources.sendings(&first.commit.resource, &overdue);
        for CommitEvent { commit, .. } in &overdue {
            let own: Vec<Sending> = sendings
                .iter()
                .copied()
                .filter(|sending| commit.revision == Revision::of_number(sending.revision))
                .collect();
            if let Some(at_us) = arrival::given_back(&own) {
                self.ledger.came(uid, &commit.revision, sources.at_ms(at_us));
            } else if ends && self.arrivals.kept(&commit.resource, arrival::is_sent(&own), now_ms, self.deadline_ms) {
                self.ledger.kept(uid, &commit.revision);
            }
        }
    }

    /// The faults that disturb the delivery of events, by number, and the times at which they were active.
    pub(super) fn arrivals(&mut self) -> &mut Arrivals<'a> {
        &mut self.arrivals
    }

    /// The subject's state after all commits so far, as its witness reported it.
    pub(super) fn believed(&mut self, writer: &mut Writer) -> Result<Vec<ledger::Known>> {
        self.catch_up(writer)?;
        Ok(self.ledger.believed())
    }

    /// For each resource, the objects with a version from before `from_ms` that is not observed at `to_ms`.
    pub(super) fn backlogs(&mut self, from_ms: u64, to_ms: u64, writer: &mut Writer) -> Result<Vec<Backlog>> {
        self.catch_up(writer)?;
        Ok(self.ledger.backlogs(from_ms, to_ms))
    }

    /// Passes refused writes of the subject to the ledger. A subject that has to try again is not at fault yet.
    pub(super) fn refused(&mut self, rows: &[RequestRow]) {
        for row in rows {
            self.ledger.refused(&row.resource, &row.namespace, &row.name, row.t_ms);
        }
    }

    /// Advances the ledger's time and writes the ledger's decisions into the record. `end` means that no commit or
    /// observation can follow. `asked` holds the subject's requests.
    pub(super) fn settle(&mut self, end: Option<Drained>, asked: &Requested, writer: &mut Writer) -> Result<()> {
        self.catch_up(writer)?;
        for observation in self.claims.look_again(end.is_some(), self.clock.now_ms(), self.feed.is_at_hand()) {
            self.observe(&observation, writer)?;
        }
        if let Some(mock) = self.plane.mock() {
            let gaps = mock.server.gaps(self.plane.subject());
            // Gaps are given in revisions. If revisions are used twice, they are no order, and gaps excuse nothing.
            for gap in gaps.into_iter().filter(|_| self.ordered) {
                let [after, through] = [gap.after, gap.through].map(Order::of_numbered);
                self.ledger.gap(&gap.resource, after, through);
            }
        }
        let now_ms = self.clock.now_ms();
        let found: Vec<_> = match end {
            Some(Drained { from_ms, to_ms }) => self.ledger.finish_quiet(now_ms, from_ms, to_ms).collect(),
            None => self.ledger.advance(now_ms).collect(),
        };
        if self.ledger.contradictions() > 0 {
            bail!("the control plane's commits contradict each other: its order cannot be trusted");
        }
        // The end of watches at the end of the run belongs to no history.
        let until_ms = end.map_or(now_ms, |drained| drained.to_ms);
        let sources = Sources { plane: self.plane, clock: &self.clock, faults: self.faults, ordered: self.ordered };
        self.dossiers.overdue(self.ledger.take_overdue(), until_ms, asked, sources);
        for mut row in found {
            if writer.wants(row.outcome) {
                self.dossiers.fill(&mut row, end.is_some(), until_ms, asked, sources);
            }
            writer.anomaly(&row)?;
        }
        Ok(())
    }

    /// Ends the warm-up, and sets the deadline from the lag of the warm-up unless the scenario sets a deadline.
    pub(super) fn end_warm_up(&mut self, p99_us: Option<u64>) {
        if self.deadline_fixed {
            return;
        }
        let usual_ms = p99_us.unwrap_or(0) / 1000;
        self.deadline_ms = (usual_ms * DEADLINE_FACTOR).max(DEADLINE_MIN_MS);
        self.ledger.set_deadline(self.deadline_ms);
    }

    /// Whether later commits count as written under a fault.
    pub(super) fn faulted(&mut self, on: bool) {
        self.ledger.faulted(on);
    }

    pub(super) fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// The lag of a canary's version in milliseconds; `None` before the subject has seen it.
    pub(super) fn resolved(&self, uid: &Uid, revision: &Revision) -> Option<u64> {
        self.ledger.resolved(uid, revision)
    }

    /// Number of written versions that the subject has not observed yet.
    pub(super) fn pending(&self) -> u64 {
        self.ledger.pending()
    }

    pub(super) fn counts(&self) -> EventCounts {
        self.ledger.counts()
    }

    pub(super) fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }
}
