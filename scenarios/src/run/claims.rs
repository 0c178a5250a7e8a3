//! Observations that a witness derives from commits, and claims (reports without a version) about objects that are not
//! known yet. Does no I/O, and reads and writes neither ledger nor record.

use std::collections::VecDeque;

use facts::Observation;

use super::feed::Entry;
use crate::witness::{Claim, Commits, Counts, Reading, Resolved};

/// How long a claim (a report without a version) may come before the commit of its object. The delays of two watches of
/// a real control plane differ by less than this time.
const WAITS_MS: u64 = 2000;
/// Maximum number of waiting claims. Most waiting claims concern objects of other programs, which never become known.
const WAITING_MAX: usize = 16_384;

/// A witness that reads commits, if the subject has one, and its waiting claims.
pub(super) struct Claims {
    witness: Option<Box<dyn Commits>>,
    waiting: VecDeque<Claim>,
}

impl Claims {
    pub(super) fn of(witness: Option<Box<dyn Commits>>) -> Self {
        Self { witness, waiting: VecDeque::new() }
    }

    /// Whether the subject must observe a commit, and the observation that the commit proves. Must be called in the
    /// order of commits.
    pub(super) fn read(&mut self, entry: &Entry, t_ms: u64) -> (Counts, Option<Observation>) {
        let all = || Reading { counts: Counts::Version, proves: None };
        let reading = self.witness.as_mut().map(|witness| witness.read(&entry.commit, entry.progress));
        let Reading { counts, proves } = reading.unwrap_or_else(all);
        let observation = |proof: crate::witness::Proof| Observation {
            t_ms,
            uid: entry.commit.uid.clone(),
            revision: proof.revision,
            change: proof.change,
        };
        (counts, proves.map(observation))
    }

    /// Finds the version of a claim at once, or keeps the claim for later. With `at_hand` all commits are known;
    /// without `at_hand`, the commit may come after the claim.
    pub(super) fn claimed(&mut self, claim: Claim, at_hand: bool) -> Option<Observation> {
        match self.witness.as_mut()?.resolve(&claim, at_hand) {
            Resolved::Proves(observation) => Some(observation),
            Resolved::Nothing => None,
            Resolved::NotYet => {
                let full = self.waiting.len() == WAITING_MAX;
                let oldest = full.then(|| self.waiting.pop_front()).flatten();
                self.waiting.push_back(claim);
                oldest.and_then(|oldest| self.last_chance(&oldest))
            }
        }
    }

    /// Finds the versions of waiting claims, in the order in which the claims came. `end` says that this is the last
    /// call.
    pub(super) fn look_again(&mut self, end: bool, now_ms: u64, at_hand: bool) -> Vec<Observation> {
        let waiting = std::mem::take(&mut self.waiting);
        let look = |claim: Claim| {
            if end || claim.t_ms.saturating_add(WAITS_MS) < now_ms {
                self.last_chance(&claim)
            } else {
                self.claimed(claim, at_hand)
            }
        };
        waiting.into_iter().filter_map(look).collect()
    }

    fn last_chance(&mut self, claim: &Claim) -> Option<Observation> {
        match self.witness.as_mut()?.resolve(claim, true) {
            Resolved::Proves(observation) => Some(observation),
            Resolved::Nothing | Resolved::NotYet => None,
        }
    }
}
