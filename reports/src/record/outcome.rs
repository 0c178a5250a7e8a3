//! The outcomes of the ledger, as they are spelled in records.
//!
//! Owns the words only; the ledger decides which one applies.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EventCounts;

/// What became of a version of an object, or of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The exact version was observed within the deadline.
    Observed,
    /// Never observed itself, but superseded in time by a later version of the object that was.
    Coalesced,
    /// Observed, or superseded by an observation, only after the deadline.
    Late,
    /// At the end of the run neither it nor a later version was observed.
    Missed,
    /// Deleted, and the deletion was not observed by the end.
    Ghost,
    /// Deleted, and the deletion was observed only after the deadline.
    LateGhost,
    /// The same version and change was observed again.
    Duplicate,
    /// An older version was observed after a newer one.
    Regressed,
    /// Observed, but never committed.
    Phantom,
    /// A version of an object was observed after its deletion was.
    Resurrected,
    /// The object was replaced under the same name, and its deletion was never observed.
    IdentitySwap,
    /// Created and deleted inside one outage of the subject's stream: no client could have observed it.
    Unobservable,
}

/// What belongs to each outcome: the words for people, and where it is counted.
macro_rules! outcomes {
    ($($name:ident $words:literal $count:ident,)+) => {
        impl Outcome {
            /// All of them, in the order of their declaration.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$name),+];

            /// The words for people, singular.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words),+
                }
            }

            /// The count of this outcome, to change it.
            pub(crate) fn of_mut(self, counts: &mut EventCounts) -> &mut u64 {
                match self {
                    $(Self::$name => &mut counts.$count),+
                }
            }
        }
    };
}

outcomes! {
    Observed "observed" observed,
    Coalesced "coalesced" coalesced,
    Late "late" late,
    Missed "missed" missed,
    Ghost "ghost" ghost,
    LateGhost "late ghost" late_ghost,
    Duplicate "duplicate" duplicate,
    Regressed "regressed" regressed,
    Phantom "phantom" phantom,
    Resurrected "resurrected" resurrected,
    IdentitySwap "identity swap" identity_swap,
    Unobservable "unobservable" unobservable,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

impl Outcome {
    /// How many outcomes there are.
    pub const COUNT: usize = 12;

    /// Whether it gets a row in `anomalies.jsonl`.
    pub fn is_anomaly(self) -> bool {
        !matches!(self, Self::Observed | Self::Coalesced)
    }

    /// The count of this outcome.
    pub fn of(self, counts: &EventCounts) -> u64 {
        let mut counts = *counts;
        *self.of_mut(&mut counts)
    }
}
