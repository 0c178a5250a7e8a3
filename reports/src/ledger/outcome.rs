//! The outcomes of the ledger and the kinds of change, as they are spelled in records.
//!
//! Owns the words only; [`super::Ledger`] decides which one applies.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of change that made a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted.
    Deleted,
}

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

impl Outcome {
    /// The words for people, singular.
    pub fn words(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Coalesced => "coalesced",
            Self::Late => "late",
            Self::Missed => "missed",
            Self::Ghost => "ghost",
            Self::LateGhost => "late ghost",
            Self::Duplicate => "duplicate",
            Self::Regressed => "regressed",
            Self::Phantom => "phantom",
            Self::Resurrected => "resurrected",
            Self::IdentitySwap => "identity swap",
            Self::Unobservable => "unobservable",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        })
    }
}
