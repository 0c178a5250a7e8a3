//! The outcomes of the ledger, with their names and counts in records.
//!
//! Owns only the names and counts of outcomes. The ledger decides which outcome applies to a version.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a version of an object, or of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The exact version was observed within the deadline.
    Observed,
    /// The version was never observed, but was superseded by a later version of the object that was observed in time.
    Coalesced,
    /// The version, or a later one that superseded it, was observed only after the deadline.
    Late,
    /// Neither the version nor a later one was observed by the end of the run.
    Missed,
    /// The object was deleted, and the deletion was not observed by the end of the run.
    Ghost,
    /// The object was deleted, and the deletion was observed only after the deadline.
    LateGhost,
    /// The same version and the same change of an object were observed again.
    Duplicate,
    /// An older version was observed after a newer one.
    Regressed,
    /// An observed version was never committed.
    Phantom,
    /// A version of an object was observed after the object's deletion was observed.
    Resurrected,
    /// The object was replaced under the same name, and its deletion was never observed.
    IdentitySwap,
    /// The object was deleted before the subject had a fair chance to observe the version, for example while the watch
    /// was interrupted.
    Unobservable,
}

/// Counts of the ledger's outcomes. In a row of an interval: outcomes decided since the previous row.
#[serde_with::apply(u64 => #[serde(skip_serializing_if = "is_zero")])]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventCounts {
    /// Versions committed to the control plane, including deletions.
    pub commits: u64,
    /// Observations that the witness carried, of any kind.
    pub observations: u64,
    /// Versions observed within the deadline.
    pub observed: u64,
    /// Versions superseded by a later version that was observed in time.
    pub coalesced: u64,
    /// Versions observed or superseded only after the deadline.
    pub late: u64,
    /// Versions of which neither they nor a later version was observed by the end of the run.
    pub missed: u64,
    /// Objects of which no version was observed by the end of the run.
    pub unseen: u64,
    /// Deletions not observed by the end of the run.
    pub ghost: u64,
    /// Deletions observed only after the deadline.
    pub late_ghost: u64,
    /// Observations of a version that had been observed before.
    pub duplicate: u64,
    /// Observations of an older version after a newer one.
    pub regressed: u64,
    /// Observations of a version that was never committed.
    pub phantom: u64,
    /// Observations of a version after the object's deletion was observed.
    pub resurrected: u64,
    /// Objects replaced under the same name whose deletion was never observed.
    pub identity_swap: u64,
    /// Versions that the subject had no fair chance to observe before the object's deletion, for example while the
    /// watch was interrupted.
    pub unobservable: u64,
    /// Versions among `unobservable` whose objects were deleted while they waited in the subject's queue, or soon after a
    /// write of the subject to them was refused, or that wait at the end after many refused writes.
    pub queued: u64,
}

/// The texts of each outcome for people, and its counter.
macro_rules! outcomes {
    ($($name:ident $words:literal $count:ident,)+) => {
        impl Outcome {
            /// All outcomes, in the order of their declaration.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$name),+];

            /// The singular name, for people.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words),+
                }
            }

            /// The count of this outcome, as a mutable reference.
            pub fn of_mut(self, counts: &mut EventCounts) -> &mut u64 {
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
    pub const COUNT: usize = 12;

    /// Whether an outcome of this kind gets a row in `anomalies.jsonl`.
    pub fn is_anomaly(self) -> bool {
        !matches!(self, Self::Observed | Self::Coalesced)
    }

    pub fn of(self, counts: &EventCounts) -> u64 {
        let mut counts = *counts;
        *self.of_mut(&mut counts)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Applies an operation, such as a subtraction, to every count.
macro_rules! each_count {
    ($left:expr, $right:expr, $op:expr, $($field:ident),+) => { EventCounts { $($field: $op($left.$field, $right.$field)),+ } };
}

impl EventCounts {
    fn zip(self, other: Self, op: impl Fn(u64, u64) -> u64) -> Self {
        each_count! {self, other, op, commits, observations, observed, coalesced, late, missed, unseen, ghost, late_ghost, duplicate,
        regressed, phantom, resurrected, identity_swap, unobservable, queued}
    }
}

impl Add for EventCounts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }
}

impl AddAssign for EventCounts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Subtraction gives the counts since an earlier time.
impl Sub for EventCounts {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        self.zip(earlier, u64::saturating_sub)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_and_subtract_every_field() {
        let schema = schemars::schema_for!(EventCounts);
        let fields = schema.get("properties").unwrap().as_object().unwrap().keys();
        let counts = fields.enumerate().map(|(i, key)| (key.clone(), serde_json::Value::from(i + 1)));
        let all: EventCounts = serde_json::from_value(counts.collect()).unwrap();
        assert_eq!((all + all) - all, all);
        assert_eq!(serde_json::to_value(all + all).unwrap()["unobservable"], 2 * all.unobservable);
        assert_ne!(all.unobservable, 0);
    }
}
