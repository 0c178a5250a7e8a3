//! The reports of a witness, and their resolution with the commits.

use std::sync::Arc;

use facts::{Change, Commit, Observation, Progress, Revision, Uid};

/// Reads commits.
pub trait Commits: Send {
    /// Reads a commit. Commits must come in their order.
    fn read(&mut self, commit: &Commit, progress: Progress) -> Reading;

    /// Resolves a claim with all earlier commits. It is the `last` time if no unknown commit can change the result.
    fn resolve(&mut self, _: &Claim, _last: bool) -> Resolved {
        Resolved::Nothing
    }
}

/// The result of reading a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The commit's meaning for the ledger.
    pub counts: Counts,
    /// The observation of this object that the commit proves.
    pub proves: Option<Proof>,
}

/// The meaning of a commit for the ledger.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// No version that the witness could observe.
    #[default]
    No,
    /// A version that has to be seen.
    Version,
    /// A request for the object's deletion, which has to be seen.
    Leaving,
    /// The object is gone, and the witness could not observe that: versions that were not seen in time by then are
    /// undecided.
    Untold,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub revision: Revision,
    /// The change of the object.
    pub change: Change,
}

/// A report of a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Saw(Observation),
    Claims(Claim),
    /// The harness cannot receive the subject's reports any more.
    Deaf(String),
}

/// A report that names no version by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Time in milliseconds of the run.
    pub t_ms: u64,
    /// The object of the claim.
    pub of: Of,
    pub what: What,
}

/// The object of a claim.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Of {
    Uid(Uid),
    /// Namespace (empty for cluster-wide objects) and name.
    Name(Arc<str>, Arc<str>),
}

/// The content of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The subject knows the object.
    There {
        /// Whether the end of this sign will show that the subject saw the deletion.
        ends: bool,
    },
    /// The subject knows the version with this generation or resourceVersion, depending on the witness.
    Version(i64),
    /// The sign that the subject knows the object has ended.
    Gone,
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    Proves(Observation),
    /// The claim proves nothing new.
    Nothing,
    /// Its version may still be committed.
    NotYet,
}
