//! What a witness makes of commits, and claims that wait until what they are about is known. Pure; nothing of the ledger or the record.

use std::collections::VecDeque;

use facts::Observation;

use super::feed::Entry;
use crate::witness::{Claim, Commits, Counts, Reading, Resolved};

/// How long a claim may come before what it is about is known: two watches of a real control plane are not so far apart.
const WAITS_MS: u64 = 2000;
/// Claims that may wait. They are mostly about objects of others, which nothing will ever be known of.
const WAITING_MAX: usize = 16_384;

/// A witness that reads commits, if the subject's does, and the claims that it could not resolve yet.
pub(super) struct Claims {
    witness: Option<Box<dyn Commits>>,
    waiting: VecDeque<Claim>,
}

impl Claims {
    pub(super) fn of(witness: Option<Box<dyn Commits>>) -> Self {
        Self { witness, waiting: VecDeque::new() }
    }

    /// What a commit is for the ledger, and what it proves to have been seen. They are shown in their order.
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

    /// Resolves a claim, now or later. What is committed is known `at_hand`, or may come after it.
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

    /// Looks again at what waited, in its order; with `end` for the last time.
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
