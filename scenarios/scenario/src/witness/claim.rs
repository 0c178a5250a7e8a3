//! Reports of a witness that name no version, and how commits resolve them to versions.

use std::sync::Arc;

use facts::{Change, Commit, Observation, Progress, Revision, Uid};

/// A reader of all commits that resolves claims.
pub trait Commits: Send {
    /// Reads a commit. This function must be called in the order of the commits.
    fn read(&mut self, commit: &Commit, progress: Progress) -> Reading;

    /// Resolves a claim with the commits read so far. The argument `_last` is true if no later commit can change the
    /// result.
    fn resolve(&mut self, _: &Claim, _last: bool) -> Resolved {
        Resolved::Nothing
    }
}

/// The effect of one commit on the ledger.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whether the subject has to observe the commit.
    pub counts: Counts,
    /// The observation of this object that the commit proves.
    pub proves: Option<Proof>,
}

/// Whether the subject has to observe a commit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// The subject need not observe the commit, because the witness could not show this version.
    #[default]
    No,
    /// The subject must observe this version.
    Version,
    /// The object's deletion was requested, and the subject must observe the request.
    Leaving,
    /// The object is gone, but the witness could not show an observation of that. Earlier versions of the deleted
    /// object that were not observed in time are undecided.
    Untold,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub revision: Revision,
    pub change: Change,
}

/// A report of a witness to the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Saw(Observation),
    Claims(Claim),
    /// The harness can no longer receive the subject's reports. The text is the reason why the harness receives
    /// nothing.
    Deaf(String),
}

/// A report that does not itself name a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Time of the report, in milliseconds of the run's clock.
    pub t_ms: u64,
    /// The object that the report is about.
    pub of: Of,
    pub what: Fact,
}

/// The object that a claim is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Of {
    Uid(Uid),
    /// Namespace (empty for cluster-wide objects) and name.
    Name(Arc<str>, Arc<str>),
}

/// The fact that a claim states about the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The subject knows the object.
    There {
        /// Whether the end of the sign that shows the object, such as a child, will prove that the subject saw the
        /// deletion.
        ends: bool,
    },
    /// The subject knows the version with this generation or resourceVersion, depending on the witness.
    Version(i64),
    /// The sign that the subject knows the object, such as a child, has ended.
    Gone,
}

/// The result of resolving a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    Proves(Observation),
    /// The claim proves nothing new.
    Nothing,
    /// The claimed version is not known, but may still be committed.
    NotYet,
}
