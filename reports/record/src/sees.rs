//! The facts that each kind of witness can report. A version counts as seen or unseen only if the witness could report
//! it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The facts that the observations of a witness can prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own in the record and on the page")]
pub struct Sees {
    /// The witness proves that the subject saw an object.
    pub created: bool,
    /// The witness proves that the subject saw a newer version of an object.
    pub updated: bool,
    /// The witness proves that the subject saw the deletion of an object.
    pub deleted: bool,
    /// The witness proves each version, even one that the next version has superseded.
    pub intermediate: bool,
    /// The witness reports every event that the subject handles, in order: duplicates, regressions and phantoms are
    /// visible.
    pub sights: bool,
}

/// One of the facts that a witness can report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sight {
    Created,
    Updated,
    Deleted,
    Intermediate,
    Each,
}

impl Sight {
    pub const EACH: [Self; 5] = [Self::Created, Self::Updated, Self::Deleted, Self::Intermediate, Self::Each];
}

impl Sees {
    /// A witness that reports every event that the subject handles.
    pub const ALL: Self = Self { created: true, updated: true, deleted: true, intermediate: true, sights: true };
    /// A witness that reports nothing.
    pub const NOTHING: Self =
        Self { created: false, updated: false, deleted: false, intermediate: false, sights: false };

    /// Whether the witness can report this fact.
    pub fn can(self, sight: Sight) -> bool {
        match sight {
            Sight::Created => self.created,
            Sight::Updated => self.updated,
            Sight::Deleted => self.deleted,
            Sight::Intermediate => self.intermediate,
            Sight::Each => self.sights,
        }
    }
}

impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "that objects are there",
            Self::Updated => "newer versions",
            Self::Deleted => "deletions",
            Self::Intermediate => "versions that the next one has superseded",
            Self::Each => "each event by itself",
        })
    }
}
