//! The facts that a witness can report, so that no version counts as unseen, or as seen, that the witness cannot
//! report.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The facts that observations of one kind of witness can prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own in the record and on the page")]
pub struct Sees {
    /// The existence of an object.
    pub created: bool,
    /// A newer version of the object.
    pub updated: bool,
    /// The deletion of the object.
    pub deleted: bool,
    /// Each version by itself, including one that the next has superseded.
    pub intermediate: bool,
    /// Every event that the subject handles, in its order: duplicates, regressions and phantoms.
    pub sights: bool,
}

/// One of the facts that a witness can report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sight {
    /// See [`Sees::created`].
    Created,
    /// See [`Sees::updated`].
    Updated,
    /// See [`Sees::deleted`].
    Deleted,
    /// See [`Sees::intermediate`].
    Intermediate,
    /// See [`Sees::sights`].
    Each,
}

impl Sight {
    pub const EACH: [Self; 5] = [Self::Created, Self::Updated, Self::Deleted, Self::Intermediate, Self::Each];
}

impl Sees {
    /// A subject that reports every event that it handles.
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
