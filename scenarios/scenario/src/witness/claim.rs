//! What a witness reports, and what the run makes of it with what was committed.

use std::sync::Arc;

use facts::{Change, Commit, Observation, Progress, Revision, Uid};

/// Reads what was committed.
pub trait Commits: Send {
    /// What a commit proves. They are shown in their order.
    fn read(&mut self, commit: &Commit, progress: Progress) -> Reading;

    /// What a claim proves, with everything that was committed before it; for the `last` time if nothing that is not known yet can change
    /// that.
    fn resolve(&mut self, _: &Claim, _last: bool) -> Resolved {
        Resolved::Nothing
    }
}

/// What is made of a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What it is for the ledger.
    pub counts: Counts,
    /// What of this object the commit proves to have been seen.
    pub proves: Option<Proof>,
}

/// What a commit is for the ledger.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Nothing that the witness could tell of.
    #[default]
    No,
    /// A version that is to be seen.
    Version,
    /// It asks for the object's deletion, which is to be seen.
    Leaving,
    /// The object is gone, and the witness could not have told: what of it was not seen in time by then is undecided.
    Untold,
}

/// A version of an object, or its deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The version.
    pub revision: Revision,
    /// What was done to the object.
    pub change: Change,
}

/// What a witness reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// A version.
    Saw(Observation),
    /// Less than a version.
    Claims(Claim),
    /// The harness cannot hear the subject any more.
    Deaf(String),
}

/// What a witness received that names no version by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// When, in milliseconds of the run.
    pub t_ms: u64,
    /// Whom it is about.
    pub of: Of,
    /// What it says.
    pub what: What,
}

/// Whom a claim is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Of {
    /// The object with this uid.
    Uid(Uid),
    /// Namespace, empty for objects of the whole cluster, and name.
    Name(Arc<str>, Arc<str>),
}

/// What is claimed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The subject knows it.
    There {
        /// The end of that will show that the subject knows it to be gone.
        ends: bool,
    },
    /// The subject knows the version with this generation or resourceVersion, whichever the witness is about.
    Version(i64),
    /// What showed that the subject knows it has ended.
    Gone,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// A version was seen.
    Proves(Observation),
    /// It proves nothing that was not proven.
    Nothing,
    /// What it is about may still be committed.
    NotYet,
}
