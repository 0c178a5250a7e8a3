//! `end-state.json`: after the drain, the subject's own idea of the world beside a fresh list of the control plane.
//!
//! Owns the facts and their bounds. It does not judge: what must be equal says a budget.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Differences that are named, of each of the two comparisons; the counts have no bound.
pub const EXAMPLES_MAX: usize = 10;

/// What the world looked like when everything had come to rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndState {
    /// What was compared, such as `packages.longhaul.dev`.
    pub resource: String,
    /// Where the subject's idea of it comes from.
    pub source: IdeaSource,
    /// What is left of what the churn made, where it deleted everything before the drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// When the fresh list was complete.
    pub listed_ms: u64,
    /// When the subject's idea was read.
    pub read_ms: u64,
    /// How often both were read until they agreed or the time was over.
    pub readings: u32,
    /// Objects in the fresh list.
    pub listed: u64,
    /// Objects that the subject believes in; none where that could not be read.
    pub believed: Option<u64>,
    /// Whether both are the same; none where that could not be told.
    pub agrees: Option<bool>,
    /// Why it could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// How they differ.
    #[serde(default)]
    pub differences: Differences,
    /// The first few objects that differ, by namespace and name.
    #[serde(default)]
    pub examples: Vec<Difference>,
    /// The objects that the subject makes for others, where the scenario names such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<ChildrenState>,
    /// The further kinds of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_children: Vec<ChildrenState>,
}

impl EndState {
    /// Each kind of the objects that the subject makes for others.
    pub fn all_children(&self) -> impl Iterator<Item = &ChildrenState> {
        self.children.iter().chain(&self.more_children)
    }
}

/// What should have been gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Left {
    /// How many objects.
    pub objects: u64,
    /// Namespace and name of the first few.
    pub examples: Vec<String>,
}

/// Where a subject's idea of the world comes from, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdeaSource {
    /// It was asked: a page of its own tells what it believes in.
    Endpoint,
    /// The objects that it makes for others.
    Children,
    /// What it told last of each object through its witness.
    Told,
}

impl IdeaSource {
    /// For people, after "by".
    pub fn words(self) -> &'static str {
        match self {
            Self::Endpoint => "its own page",
            Self::Children => "the children that it keeps",
            Self::Told => "its last report of each object",
        }
    }
}

/// Objects that differ, by how they do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Differences {
    /// It believes in them and they are gone.
    pub gone: u64,
    /// They exist and it knows nothing of them.
    pub unknown: u64,
    /// It knows another version of them.
    pub behind: u64,
    /// It knows another object of their name.
    pub replaced: u64,
}

/// How an object differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// The subject believes in it and it is gone.
    Gone,
    /// It exists and the subject knows nothing of it.
    Unknown,
    /// The subject knows another version of it.
    Behind,
    /// The subject knows another object of its name.
    Replaced,
}

/// One object that differs, with both versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// How it differs.
    pub kind: DifferenceKind,
    /// Its namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The uid that the subject knows; none where it knows none.
    pub believed_uid: Option<String>,
    /// The version that the subject knows; none where it knows none, or where the ledger has forgotten its name.
    pub believed_revision: Option<String>,
    /// The uid in the fresh list; none where it is not there.
    pub listed_uid: Option<String>,
    /// The version in the fresh list; none where it is not there.
    pub listed_revision: Option<String>,
}

/// The objects that the subject makes for others, beside what they should be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChildrenState {
    /// What the children are, such as `networkpolicies.networking.k8s.io`.
    pub resource: String,
    /// When their list was complete.
    pub listed_ms: u64,
    /// Why they could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Objects that should have children.
    pub parents: u64,
    /// Children that they should have together.
    pub wanted: u64,
    /// Children that there are, of parents that are gone too.
    pub found: u64,
    /// Parents with fewer children than they should have.
    pub lacking: u64,
    /// Those of them for which there is an object that could be the child, but has no owner reference.
    #[serde(skip_serializing_if = "is_zero")]
    pub unowned: u64,
    /// Parents with more.
    pub surplus: u64,
    /// Children of an older version of their parent.
    pub stale: u64,
    /// Children that still are as the harness edited them.
    pub edited: u64,
    /// Children whose parent is gone.
    pub orphans: u64,
    /// The first few of what is wrong, by parent.
    pub examples: Vec<ChildProblem>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ChildrenState {
    /// How many things are wrong.
    pub fn problems(&self) -> u64 {
        self.lacking + self.surplus + self.stale + self.edited + self.orphans
    }
}

/// What is wrong with children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChildProblemKind {
    /// The parent has fewer than it should have.
    Lacking,
    /// The parent has more.
    Surplus,
    /// A child is of an older version of its parent.
    Stale,
    /// A child still is as the harness edited it.
    Edited,
    /// The parent of a child is gone.
    Orphan,
}

/// One thing that is wrong with children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildProblem {
    /// What is wrong.
    pub kind: ChildProblemKind,
    /// Namespace and name of the parent, or of a child whose parent is gone.
    pub object: String,
    /// The child, where it is about one.
    pub child: Option<String>,
    /// What should be there.
    pub wanted: String,
    /// What is there.
    pub found: String,
}
