//! `end-state.json`: after the drain, the subject's view of the world beside a fresh list of the control plane.
//!
//! Owns the facts and their bounds. It does not judge: a budget decides what must be equal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Named differences in each of the two comparisons; the counts have no bound.
pub const EXAMPLES_MAX: usize = 10;

/// The state of the world when everything had come to rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndState {
    /// The compared resource, such as `packages.longhaul.dev`.
    pub resource: String,
    /// The source of the subject's view.
    pub source: IdeaSource,
    /// The rest of the churned objects, if the churn deleted everything before the drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// When the fresh list was complete.
    pub listed_ms: u64,
    /// When the subject's view was read.
    pub read_ms: u64,
    /// How often both were read until they agreed or the time was over.
    pub readings: u32,
    /// Objects in the fresh list.
    pub listed: u64,
    /// Objects that the subject believes in; none if its view could not be read.
    pub believed: Option<u64>,
    /// Whether both are the same; none if they could not be compared.
    pub agrees: Option<bool>,
    /// Why they could not be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// How they differ.
    #[serde(default)]
    pub differences: Differences,
    /// The first few objects that differ, by namespace and name.
    #[serde(default)]
    pub examples: Vec<Difference>,
    /// The objects that the subject makes for others, if the scenario names any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<ChildrenState>,
    /// The further kinds of such objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_children: Vec<ChildrenState>,
}

impl EndState {
    /// Each kind of the objects that the subject makes for others.
    pub fn all_children(&self) -> impl Iterator<Item = &ChildrenState> {
        self.children.iter().chain(&self.more_children)
    }
}

/// Objects that should have been deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Left {
    /// The number of objects.
    pub objects: u64,
    /// Namespace and name of the first few.
    pub examples: Vec<String>,
}

/// The sources of a subject's view of the world, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdeaSource {
    /// An endpoint of the subject lists the objects that it believes in.
    Endpoint,
    /// The objects that it makes for others.
    Children,
    /// The last report of each object through its witness.
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

/// Counts of objects that differ, by the kind of difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Differences {
    /// The subject believes in them and they are gone.
    pub gone: u64,
    /// They exist and the subject does not know them.
    pub unknown: u64,
    /// The subject knows another version of them.
    pub behind: u64,
    /// The subject knows another object of their name.
    pub replaced: u64,
}

/// The kind of difference of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// The subject believes in it and it is gone.
    Gone,
    /// The object exists and the subject does not know it.
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
    /// The kind of difference.
    pub kind: DifferenceKind,
    /// Its namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The uid that the subject knows; none if it knows none.
    pub believed_uid: Option<String>,
    /// The version that the subject knows; none if it knows none, or if the ledger has forgotten its name.
    pub believed_revision: Option<String>,
    /// The uid in the fresh list; none if the list does not contain the object.
    pub listed_uid: Option<String>,
    /// The version in the fresh list; none if the list does not contain the object.
    pub listed_revision: Option<String>,
}

/// The objects that the subject makes for others, beside the expected ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChildrenState {
    /// The resource of the children, such as `networkpolicies.networking.k8s.io`.
    pub resource: String,
    /// When their list was complete.
    pub listed_ms: u64,
    /// Why they could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Objects that should have children.
    pub parents: u64,
    /// Children that the parents should have together.
    pub wanted: u64,
    /// Children that exist, including those of parents that are gone.
    pub found: u64,
    /// Parents with fewer children than they should have.
    pub lacking: u64,
    /// Parents among `lacking` for which an object exists that could be the child, but has no owner reference.
    #[serde(skip_serializing_if = "is_zero")]
    pub unowned: u64,
    /// Parents with more children than they should have.
    pub surplus: u64,
    /// Children of an older version of their parent.
    pub stale: u64,
    /// Children that are still as the harness edited them.
    pub edited: u64,
    /// Children whose parent is gone.
    pub orphans: u64,
    /// The first few problems, by parent.
    pub examples: Vec<ChildProblem>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ChildrenState {
    /// The number of problems.
    pub fn problems(&self) -> u64 {
        self.lacking + self.surplus + self.stale + self.edited + self.orphans
    }
}

/// The kind of problem with children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChildProblemKind {
    /// The parent has fewer children than it should have.
    Lacking,
    /// The parent has more children than it should have.
    Surplus,
    /// A child belongs to an older version of its parent.
    Stale,
    /// A child is still as the harness edited it.
    Edited,
    /// The parent of a child is gone.
    Orphan,
}

/// One problem with children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildProblem {
    /// The kind of problem.
    pub kind: ChildProblemKind,
    /// Namespace and name of the parent, or of a child whose parent is gone.
    pub object: String,
    /// The child, if the problem is about one.
    pub child: Option<String>,
    /// The expected state.
    pub wanted: String,
    /// The actual state.
    pub found: String,
}
