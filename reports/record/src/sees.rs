//! What a witness can tell, so that nothing is called unseen, or seen, that nobody could have told of.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What observations of one kind of witness can prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own in the record and on the page")]
pub struct Sees {
    /// That an object is there.
    pub created: bool,
    /// That a newer version of it is known.
    pub updated: bool,
    /// That it is gone.
    pub deleted: bool,
    /// Each version by itself, also one that the next has superseded.
    pub intermediate: bool,
    /// Whatever the subject took for new, in its order: what comes twice, goes back, or never was.
    pub sights: bool,
}

/// One of the things that a witness can tell.
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
    /// All of them.
    pub const EACH: [Self; 5] = [Self::Created, Self::Updated, Self::Deleted, Self::Intermediate, Self::Each];
}

impl Sees {
    /// A subject that tells every event that it handles.
    pub const ALL: Self = Self { created: true, updated: true, deleted: true, intermediate: true, sights: true };
    /// What watches nothing tells of nothing.
    pub const NOTHING: Self =
        Self { created: false, updated: false, deleted: false, intermediate: false, sights: false };

    /// Whether it can tell this.
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
